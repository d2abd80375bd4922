-- The ledger of usage: one row an event, written once. A correction is an event of its own, with a negative quantity.
create table if not exists usage_events (
  id text primary key,
  tenant text not null,
  meter text not null,
  quantity numeric(30, 0) not null check (quantity <> 0),
  corrects text,
  occurred_at timestamptz not null,
  recorded_at timestamptz not null default now(),
  unique (tenant, id),
  -- An event of the same tenant, or none.
  foreign key (tenant, corrects) references usage_events (tenant, id)
);

create index if not exists usage_events_meter on usage_events (tenant, meter, occurred_at);

create or replace function usage_events_are_final() returns trigger language plpgsql as $$
begin
  raise exception 'usage events are never changed: record a correction';
end $$;

create or replace trigger usage_events_final before update or delete on usage_events
  for each row execute function usage_events_are_final();
