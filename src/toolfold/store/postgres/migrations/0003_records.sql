-- What is learnt and written down as calls come in: entries that may be lost, the memory of
-- searches, and the audit.

-- Bytes under keys: hidden turns of conversations through the proxy, and what a gateway's
-- conversations have revealed.
create table toolfold.entries (
    tenant text not null,
    kind text not null,
    key text not null,
    version bigint not null,
    value bytea not null,
    used timestamptz not null default now(),
    primary key (tenant, kind, key)
);

create index entries_by_age on toolfold.entries (tenant, kind, used);

-- A tenant's memory. Whoever changes it holds its row, so that numbers rise in the order in
-- which they can be seen.
create table toolfold.memories (
    tenant text primary key,
    generation bigint not null default 0,
    seq bigint not null default 0,
    pairs bigint not null default 0
);

-- The files that were taken over into a memory.
create table toolfold.memory_files (
    tenant text not null,
    origin bigint not null,
    at timestamptz not null default now(),
    primary key (tenant, origin)
);

create table toolfold.memory_tools (
    tenant text not null,
    id bigint generated always as identity,
    name text not null,
    digest text not null,
    seen double precision not null,
    primary key (tenant, id),
    unique (tenant, name, digest)
);

-- `key` is a digest of the principal and the text; `ranked` is a list of tools and numbers.
create table toolfold.memory_requests (
    tenant text not null,
    id bigint generated always as identity,
    key bytea not null,
    seq bigint not null,
    principal text not null,
    text text not null,
    at double precision not null,
    made_by bigint not null,
    vector bytea not null,
    ranked jsonb not null,
    primary key (tenant, id),
    unique (tenant, key)
);

create index memory_requests_by_seq on toolfold.memory_requests (tenant, seq);
create index memory_requests_by_time on toolfold.memory_requests (tenant, at);

create table toolfold.memory_uses (
    tenant text not null,
    request bigint not null,
    tool bigint not null,
    worked integer not null,
    failed integer not null,
    at double precision not null,
    primary key (tenant, request, tool),
    foreign key (tenant, request) references toolfold.memory_requests on delete cascade,
    foreign key (tenant, tool) references toolfold.memory_tools on delete cascade
);

create index memory_uses_by_tool on toolfold.memory_uses (tenant, tool);

create table toolfold.memory_pairs (
    tenant text not null,
    principal text not null,
    tool bigint not null,
    other bigint not null,
    times integer not null,
    at double precision not null,
    primary key (tenant, principal, tool, other),
    foreign key (tenant, tool) references toolfold.memory_tools on delete cascade,
    foreign key (tenant, other) references toolfold.memory_tools on delete cascade
);

-- The audit: lines as a file would have them.
create table toolfold.audit (
    id bigint generated always as identity primary key,
    tenant text not null,
    at timestamptz not null,
    replica text not null,
    line json not null
);

create index audit_by_time on toolfold.audit (tenant, at);

alter table toolfold.entries enable row level security;
alter table toolfold.memories enable row level security;
alter table toolfold.memory_files enable row level security;
alter table toolfold.memory_tools enable row level security;
alter table toolfold.memory_requests enable row level security;
alter table toolfold.memory_uses enable row level security;
alter table toolfold.memory_pairs enable row level security;
alter table toolfold.audit enable row level security;
create policy own_tenant on toolfold.entries
    using (tenant = current_setting('toolfold.tenant', true));
create policy own_tenant on toolfold.memories
    using (tenant = current_setting('toolfold.tenant', true));
create policy own_tenant on toolfold.memory_files
    using (tenant = current_setting('toolfold.tenant', true));
create policy own_tenant on toolfold.memory_tools
    using (tenant = current_setting('toolfold.tenant', true));
create policy own_tenant on toolfold.memory_requests
    using (tenant = current_setting('toolfold.tenant', true));
create policy own_tenant on toolfold.memory_uses
    using (tenant = current_setting('toolfold.tenant', true));
create policy own_tenant on toolfold.memory_pairs
    using (tenant = current_setting('toolfold.tenant', true));

-- A line of the audit is written once, read, and deleted when it is old: nobody but the owner
-- changes one, or takes out what was written today.
create policy own_lines on toolfold.audit for select
    using (tenant = current_setting('toolfold.tenant', true));
create policy new_lines on toolfold.audit for insert
    with check (tenant = current_setting('toolfold.tenant', true));
create policy old_lines on toolfold.audit for delete
    using (tenant = current_setting('toolfold.tenant', true) and at < now() - interval '1 day');
