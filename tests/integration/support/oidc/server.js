// An OpenID Connect issuer for tests: oidc-provider with clients that get JSON Web Tokens for themselves, and one that
// logs people in. Arguments: the port, a file with the private keys as a JWK set, and the address of a page whose users
// log in. It runs until its standard input ends.
import { readFileSync } from "node:fs";
import Provider from "oidc-provider";

const [port, keyFile, page] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;

// What a client asks for with `resource`: the audience, the algorithm, and for how many seconds the token is valid.
const RESOURCES = {
  "urn:fleet": { audience: "fleet-api", algorithm: "RS256", seconds: 600 },
  "urn:other": { audience: "other", algorithm: "RS256", seconds: 600 },
  "urn:elliptic": { audience: "fleet-api", algorithm: "ES256", seconds: 600 },
  "urn:short": { audience: "fleet-api", algorithm: "RS256", seconds: 1 },
};

const services = ["alice", "bob"].map((name) => ({
  client_id: name,
  client_secret: "test",
  grant_types: ["client_credentials"],
  redirect_uris: [],
  response_types: [],
}));
// A public client: it has no secret, so the provider wants PKCE.
const people = page ? [{ client_id: "page", token_endpoint_auth_method: "none", redirect_uris: [page], grant_types: ["authorization_code"] }] : [];

const provider = new Provider(issuer, {
  clients: [...services, ...people],
  clientBasedCORS: (_context, origin) => Boolean(page) && origin === new URL(page).origin,
  jwks: JSON.parse(readFileSync(keyFile, "utf8")),
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: Boolean(page) },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_context, resource) => {
        const { audience, algorithm, seconds } = RESOURCES[resource];
        return { scope: "", audience, accessTokenTTL: seconds, accessTokenFormat: "jwt", jwt: { sign: { alg: algorithm } } };
      },
    },
  },
  extraTokenClaims: (_context, token) => ({ groups: [`${token.clientId}-team`] }),
});

provider.listen(Number(port), "127.0.0.1", () => console.log("listening"));
process.stdin.resume().on("end", () => process.exit(0));
