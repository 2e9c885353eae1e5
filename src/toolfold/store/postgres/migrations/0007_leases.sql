-- What one replica has and no other, for a while; and how much a caller has asked of all of them.

create table toolfold.leases (
    tenant text not null,
    name text not null,
    holder uuid not null,
    -- Grows with every tenure; a row is never deleted, so that it never begins anew.
    token bigint not null,
    ends timestamptz not null,
    primary key (tenant, name)
);

create table toolfold.rates (
    tenant text not null,
    name text not null,
    -- When the bucket is full again.
    full_at timestamptz not null,
    primary key (tenant, name)
);

alter table toolfold.leases enable row level security;
alter table toolfold.rates enable row level security;
create policy own_tenant on toolfold.leases
    using (tenant = current_setting('toolfold.tenant', true));
create policy own_tenant on toolfold.rates
    using (tenant = current_setting('toolfold.tenant', true));
