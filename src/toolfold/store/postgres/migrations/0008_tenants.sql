-- Whose entries and lines there are, so that what is too old goes though its tenant never comes
-- again. It runs as the owner, whom no policy binds; it tells names, and nothing of what they have.
create function toolfold.tenants() returns setof text language sql stable security definer
set search_path = pg_catalog, pg_temp as $$
    with recursive
        -- From one name to the next by the index: there are few of them, and many rows.
        of_entries (tenant) as (
            select min(tenant) from toolfold.entries
            union all
            select (select min(e.tenant) from toolfold.entries e where e.tenant > o.tenant)
            from of_entries o where o.tenant is not null
        ),
        of_audit (tenant) as (
            select min(tenant) from toolfold.audit
            union all
            select (select min(a.tenant) from toolfold.audit a where a.tenant > o.tenant)
            from of_audit o where o.tenant is not null
        )
    select tenant from of_entries where tenant is not null
    union
    select tenant from of_audit where tenant is not null
$$;
