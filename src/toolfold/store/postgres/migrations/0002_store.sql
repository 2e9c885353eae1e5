-- What replicas of one deployment share: whole documents, who is there, and what they tell
-- each other.

create table toolfold.documents (
    tenant text not null,
    name text not null,
    version bigint not null,
    content bytea,
    changed timestamptz not null default now(),
    primary key (tenant, name)
);

create table toolfold.replicas (
    tenant text not null,
    id uuid not null,
    name text not null,
    seen timestamptz not null default now(),
    primary key (tenant, id)
);

create table toolfold.mail (
    id bigint generated always as identity primary key,
    tenant text not null,
    sender uuid not null,
    receiver uuid not null,
    verb text not null,
    answers bigint,
    content bytea not null,
    sent timestamptz not null default now()
);

create index mail_by_receiver on toolfold.mail (tenant, receiver);

alter table toolfold.documents enable row level security;
alter table toolfold.replicas enable row level security;
alter table toolfold.mail enable row level security;
create policy own_tenant on toolfold.documents
    using (tenant = current_setting('toolfold.tenant', true));
create policy own_tenant on toolfold.replicas
    using (tenant = current_setting('toolfold.tenant', true));
create policy own_tenant on toolfold.mail
    using (tenant = current_setting('toolfold.tenant', true));
