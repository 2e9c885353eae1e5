-- The indexes that large catalogs are searched by. A small catalog is looked through, and to build
-- an index over a million tools takes a fraction of what it takes to keep it while they come: so
-- they are made when a catalog is large, at the end of the push that made it so.

-- How many tools of a source hold a term stands with the source: in a table of their own they were
-- ten rows for every tool, and half of what a push took.
alter table toolfold.sources
    add column terms text[] not null default '{}', add column holders integer[] not null default '{}';
update toolfold.sources s set (terms, holders) = (
    select coalesce(array_agg(t.term), '{}'), coalesce(array_agg(t.holders), '{}')
    from toolfold.source_terms t where t.tenant = s.tenant and t.source = s.source
);
drop table toolfold.source_terms;

drop function toolfold.by_words(sparsevec, integer[], integer[], text[], jsonb, integer);
drop index toolfold.tools_by_vector;
drop index toolfold.tools_by_term;

create function toolfold.has_large_indexes() returns boolean language sql stable as $$
    select count(*) = 2 from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'toolfold' and c.relname in ('tools_by_term', 'tools_by_leading')
$$;

-- It runs as the owner, whose the table is. Whoever writes meanwhile waits; searches go on.
create function toolfold.build_large_indexes() returns void language plpgsql security definer
set search_path = pg_catalog, toolfold, public, pg_temp as $$
begin
    lock table toolfold.tools in share row exclusive mode;
    create index if not exists tools_by_term on toolfold.tools
        using gin (terms) with (fastupdate = off);
    -- A first look at the leading dimensions, as the embedded search takes it.
    create index if not exists tools_by_leading on toolfold.tools
        using hnsw ((subvector(vector, 1, 64)::halfvec(64)) halfvec_ip_ops);
    analyze toolfold.tools;
end
$$;

-- The tools that hold one of some terms, or both of a pair, by the worth of a request's words.
-- It runs as the owner, because the index over terms is not used beneath row-level security:
-- the tenant is asked for here in the same words.
create function toolfold.by_words(
    request sparsevec, any_of integer[], pairs integer[], sources text[], scope jsonb,
    looked_at integer, most integer
) returns table (id bigint) language plpgsql stable security definer
set search_path = pg_catalog, toolfold, public, pg_temp as $$
declare
    held text;
begin
    select string_agg(format('t.terms @> %L::integer[]', array[pairs[i], pairs[i + 1]]), ' or ')
        into held from generate_series(1, coalesce(array_length(pairs, 1), 0), 2) as i;
    held := concat_ws(' or ', case when cardinality(any_of) > 0 then 't.terms && $2' end, held);
    if held = '' then
        return;
    end if;
    return query execute format(
        'select o.id from (select t.id, t.digest, t.words from toolfold.tools t'
        ' where t.tenant = current_setting(''toolfold.tenant'', true) and t.trusted and (%s)%s%s'
        ' limit $5) as o order by o.words <#> $1, o.digest limit $6',
        held,
        case when sources is not null then ' and t.source = any ($3)' end,
        case when scope is not null then
            ' and toolfold.in_scope(t.name, t.source, t.bare_name, t.toolset, t.has_own_name,'
            ' t.plain_name, t.plain_source, t.plain_bare_name, t.plain_toolset, $4)' end
    ) using request, any_of, sources, scope, looked_at, most;
end
$$;

-- What was written before says nothing of strong words: the next push writes it anew.
update toolfold.tools set made_by = '';

-- A catalog that is large already.
do $$
begin
    if exists (select from toolfold.catalogs where size > 8192) then
        perform toolfold.build_large_indexes();
    end if;
end
$$;
