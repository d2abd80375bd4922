/** An account at the payment provider: payments, keys and look-ups of one account are invisible to every other. */
export interface PspAccount {
  readonly id: string;
  readonly tenant: string;
  /** What proves to the provider that a call is the account's. A real service keeps it in a vault, never in a table. */
  readonly secret: string;
}

const ACCOUNTS: readonly PspAccount[] = [
  { id: "acct_acme", tenant: "acme", secret: "psp_test_acme" },
  { id: "acct_globex", tenant: "globex", secret: "psp_test_globex" },
];

/** The id of the tenant's account: harmless, so it may be stored with a charge for whoever resumes it. */
export function accountIdOf(tenant: string): string {
  return only(ACCOUNTS.filter((account) => account.tenant === tenant)).id;
}

/** The account of that id. Raises where it is another tenant's: nothing that was stored can lead to somebody else's money. */
export function accountOf(id: string, tenant: string): PspAccount {
  return only(ACCOUNTS.filter((account) => account.id === id && account.tenant === tenant));
}

/** Whether the secret is that account's. The provider's side of it. */
export function isAccount(id: string, secret: string): boolean {
  return ACCOUNTS.some((account) => account.id === id && account.secret === secret);
}

function only([account]: readonly PspAccount[]): PspAccount {
  if (account === undefined) throw new Error("The tenant has no such account at the payment provider.");
  return account;
}
