#!/bin/sh
# What the entry point of the official PostgreSQL image does, for its stand-in in `make container-demo`.
set -eu
export PATH=$(echo /usr/lib/postgresql/*/bin):$PATH PGDATA=/var/lib/postgresql/data
install -d -o postgres /var/run/postgresql
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  install -d -o postgres -g postgres -m 0700 "$PGDATA"
  echo "$POSTGRES_PASSWORD" > /tmp/password && chown postgres /tmp/password
  su postgres -c "$(which initdb) -U $POSTGRES_USER --pwfile=/tmp/password \
    --encoding=UTF8 --auth-host=scram-sha-256 --auth-local=trust"
  rm /tmp/password
  echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
  su postgres -c "$(which pg_ctl) -w -o '-c listen_addresses= ' start"
  createdb -h /var/run/postgresql -U "$POSTGRES_USER" "$POSTGRES_DB"
  for file in /docker-entrypoint-initdb.d/*.sql; do
    psql -h /var/run/postgresql -U "$POSTGRES_USER" -d "$POSTGRES_DB" -v ON_ERROR_STOP=1 -f "$file"
  done
  su postgres -c "$(which pg_ctl) -w stop"
fi
exec setpriv --reuid=postgres --regid=postgres --init-groups "$(which postgres)" -c listen_addresses='*'
