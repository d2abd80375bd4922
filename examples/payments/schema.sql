-- The example's own tables. Oncekey's live in the schema "oncekey" and are made by its migrations.
-- Every row says whose it is and which key made it: support can follow a row back to the request, and the lab counts
-- effects by it. Amounts are numeric, not bigint: an amount has as many digits as the client says.

create table if not exists invoices (
  id text primary key,
  seq bigint generated always as identity,
  tenant text not null,
  client text,
  idempotency_key text,
  customer_id text not null,
  amount_minor numeric(30, 0) not null check (amount_minor > 0),
  currency text not null,
  metadata json,
  status text not null default 'draft',
  created_at timestamptz not null default now()
);

create table if not exists charges (
  id text primary key,
  seq bigint generated always as identity,
  tenant text not null,
  client text,
  idempotency_key text,
  amount_minor numeric(30, 0) not null check (amount_minor > 0),
  currency text not null,
  source text not null,
  status text not null default 'pending' check (status in ('pending', 'succeeded', 'declined')),
  psp_authorization text,
  psp_capture text,
  created_at timestamptz not null default now()
);

create table if not exists refunds (
  id text primary key,
  seq bigint generated always as identity,
  tenant text not null,
  client text,
  idempotency_key text,
  charge_id text not null references charges (id),
  amount_minor numeric(30, 0) not null check (amount_minor > 0),
  status text not null default 'succeeded',
  created_at timestamptz not null default now()
);

-- What makes an invoice the same for ever, also when its key's entry is long purged (operations/invoices.ts).
-- Asked first: "if not exists" alone would lock the table against those who use it, at every start.
do $$ begin
  if not exists (select from pg_attribute where attrelid = 'invoices'::regclass and attname = 'reference') then
    alter table invoices add column reference text constraint invoices_reference unique;
  end if;
end $$;

create index if not exists invoices_tenant on invoices (tenant, seq);
create index if not exists charges_tenant on charges (tenant, seq);
create index if not exists refunds_tenant on refunds (tenant, seq);
create index if not exists refunds_charge on refunds (charge_id);
