-- The shared catalog: tools, and what is known of all of them together.

create table toolfold.tools (
    id bigint generated always as identity primary key,
    tenant text not null,
    name text not null,
    source text not null,
    digest text not null,
    -- What scopes look at: the toolset, the source's own name for the tool, and all of them
    -- without case and encoding, as a `deny` pattern reads them.
    toolset text,
    bare_name text not null,
    has_own_name boolean not null,
    plain_name text not null,
    plain_source text not null,
    plain_toolset text,
    plain_bare_name text not null,
    trusted boolean not null default true,
    definition text not null,
    -- What search looks at.
    made_by text not null,
    term_count integer not null,
    document bytea not null,
    vector halfvec(256) not null,
    words sparsevec(1000000000) not null,
    terms integer[] not null,
    changed timestamptz not null default now(),
    unique (tenant, name)
);

create index tools_by_source on toolfold.tools (tenant, source);
create index tools_by_term on toolfold.tools using gin (terms) with (fastupdate = off);
create index tools_by_vector on toolfold.tools using hnsw (vector halfvec_ip_ops);

-- How many tools hold a term: of a source, and of all.
create table toolfold.source_terms (
    tenant text not null,
    term text not null,
    source text not null,
    holders integer not null,
    primary key (tenant, term, source)
);

create table toolfold.terms (
    tenant text not null,
    term text not null,
    holders integer not null,
    primary key (tenant, term)
);

-- A source: how many tools, the lengths of their fields, the sum of their vectors and its mean.
create table toolfold.sources (
    tenant text not null,
    source text not null,
    toolsets text[] not null,
    size integer not null,
    lengths bigint[] not null,
    filled bigint[] not null,
    vector_sum bytea not null,
    mean vector(256) not null,
    primary key (tenant, source)
);

-- A tenant's whole catalog. Whoever changes it holds its row.
create table toolfold.catalogs (
    tenant text primary key,
    version bigint not null default 0,
    made_by text not null,
    size integer not null default 0,
    lengths bigint[] not null,
    filled bigint[] not null,
    vector_sum bytea not null,
    moment bytea not null
);

alter table toolfold.tools enable row level security;
alter table toolfold.source_terms enable row level security;
alter table toolfold.terms enable row level security;
alter table toolfold.sources enable row level security;
alter table toolfold.catalogs enable row level security;
create policy own_tenant on toolfold.tools
    using (tenant = current_setting('toolfold.tenant', true));
create policy own_tenant on toolfold.source_terms
    using (tenant = current_setting('toolfold.tenant', true));
create policy own_tenant on toolfold.terms
    using (tenant = current_setting('toolfold.tenant', true));
create policy own_tenant on toolfold.sources
    using (tenant = current_setting('toolfold.tenant', true));
create policy own_tenant on toolfold.catalogs
    using (tenant = current_setting('toolfold.tenant', true));

-- Whether a tool is in a scope: a list of levels, all of which must hold it, each with its
-- `allow` and `deny` patterns as regular expressions (see `toolfold.shared._scopes`).
create function toolfold.in_scope(
    name text, source text, bare_name text, toolset text, has_own_name boolean,
    plain_name text, plain_source text, plain_bare_name text, plain_toolset text, scope jsonb
) returns boolean language sql immutable parallel safe as $$
    select not exists (
        select from jsonb_array_elements(scope) as level
        where not exists (
            select from jsonb_to_recordset(level -> 'allow')
                as p (whole text, toolset text, source text, own text, exact text, hosts text,
                    hosts_own text)
            where case
                when p.toolset is not null then in_scope.toolset ~ p.toolset
                when in_scope.source = '' or p.source is null then in_scope.name ~ p.whole
                else (in_scope.source ~ p.source and in_scope.bare_name ~ p.own)
                    or (in_scope.has_own_name and in_scope.name = p.exact)
                    or (p.hosts is not null
                        and starts_with(in_scope.name, 'mcp__' || in_scope.source || '__')
                        and in_scope.source ~ p.hosts and in_scope.bare_name ~ p.hosts_own)
            end
        ) or exists (
            select from jsonb_to_recordset(level -> 'deny')
                as p (whole text, toolset text, source text, own text)
            where case
                when p.toolset is not null then in_scope.plain_toolset ~ p.toolset
                else in_scope.plain_name ~ p.whole
                    or (in_scope.source <> '' and in_scope.has_own_name
                        and in_scope.plain_source || '__' || in_scope.plain_bare_name ~ p.whole)
                    or (in_scope.source <> '' and p.source is not null
                        and in_scope.plain_source ~ p.source
                        and in_scope.plain_bare_name ~ p.own)
            end
        )
    )
$$;

-- The tools that hold one of some terms, or all of others, by the worth of a request's words.
-- It runs as the owner, because the index over terms is not used beneath row-level security:
-- the tenant is asked for here in the same words.
create function toolfold.by_words(
    request sparsevec, any_of integer[], all_of integer[], sources text[], scope jsonb, most integer
) returns table (id bigint) language sql stable security definer
set search_path = toolfold, public set plan_cache_mode = force_custom_plan as $$
    select t.id from toolfold.tools t
    where t.tenant = current_setting('toolfold.tenant', true) and t.trusted
        and (t.terms && any_of or t.terms @> all_of)
        and (by_words.sources is null or t.source = any (by_words.sources))
        and (by_words.scope is null or toolfold.in_scope(
            t.name, t.source, t.bare_name, t.toolset, t.has_own_name,
            t.plain_name, t.plain_source, t.plain_bare_name, t.plain_toolset, by_words.scope))
    order by t.words <#> request, t.digest
    limit most
$$;
