-- Sessions that any replica may go on with, and the calls that must not run twice.

create table toolfold.client_sessions (
    tenant text not null,
    id text not null,
    owner text not null,
    opening bytea not null,
    wishes bytea,
    listener uuid,
    opened timestamptz not null default now(),
    touched timestamptz not null default now(),
    ended timestamptz,
    primary key (tenant, id)
);

create index client_sessions_by_owner on toolfold.client_sessions (tenant, owner);

create table toolfold.journal (
    tenant text not null,
    session text not null,
    request bytea not null,
    digest bytea not null,
    replica uuid not null,
    outcome bytea,
    began timestamptz not null default now(),
    ended timestamptz,
    primary key (tenant, session, request)
);

create index journal_by_time on toolfold.journal (tenant, began);

alter table toolfold.client_sessions enable row level security;
alter table toolfold.journal enable row level security;
create policy own_tenant on toolfold.client_sessions
    using (tenant = current_setting('toolfold.tenant', true));
create policy own_tenant on toolfold.journal
    using (tenant = current_setting('toolfold.tenant', true));
