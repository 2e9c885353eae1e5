-- A tool by another form of its name, and the tools that change nothing.

-- A name as its letters and digits say it, whatever stands between them and whatever their case.
create function toolfold.name_key(name text) returns text
language sql immutable parallel safe as $$
    select regexp_replace(
        translate(name, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz'),
        '[\u0001-\u002f\u003a-\u0060\u007b-\u007f]', '', 'g'
    )
$$;

alter table toolfold.tools
    add column name_key text generated always as (toolfold.name_key(name)) stored,
    add column bare_key text generated always as (toolfold.name_key(bare_name)) stored,
    -- Whether a tool says that it changes nothing.
    add column read_only boolean not null default false;

create index tools_by_name_key on toolfold.tools (tenant, name_key);
create index tools_by_bare_key on toolfold.tools (tenant, bare_key);

-- What was written before says nothing of that: the next push writes it anew.
update toolfold.tools set made_by = '' where made_by <> '';
