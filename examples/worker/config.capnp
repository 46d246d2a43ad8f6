# For workerd on this machine; on Cloudflare, wrangler's configuration says the same (README.md).
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (
      name = "worker",
      worker = (
        modules = [(name = "worker", esModule = embed "dist/worker.js")],
        compatibilityDate = "2026-06-01",
        compatibilityFlags = ["nodejs_compat"],
        bindings = [
          (name = "DATABASE_URL", fromEnvironment = "DATABASE_URL"),
          (name = "PUBLIC_URL", fromEnvironment = "PUBLIC_URL"),
          (name = "AGENT_URL", fromEnvironment = "AGENT_URL"),
          (name = "BRAND_JSON_URL", fromEnvironment = "BRAND_JSON_URL"),
          (name = "ALLOW_LOOPBACK", fromEnvironment = "ALLOW_LOOPBACK"),
        ],
      ),
    ),
    # "private": the database, and a seller on this machine.
    (name = "internet", network = (allow = ["public", "private"], tlsOptions = (trustBrowserCas = true))),
  ],
  sockets = [(name = "http", address = "127.0.0.1:3000", http = (), service = "worker")],
);
