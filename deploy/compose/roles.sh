#!/bin/sh
# PostgreSQL's image runs it once, when the database is made: the role that is not the owner.
set -eu
psql --set ON_ERROR_STOP=1 --set password="$APP_PASSWORD" \
    --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
create role app login password :'password';
SQL
