//! Counters of services and mounts in `apus metrics` and Prometheus. `docs/fs/metrics.md` is
//! written from this.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use apus::introspection::{PublishedMetrics, publish_metrics};
use apus::snapshot::{ApplicationFamily as Family, FamilyKind};
use apus_fs_core::client::ClientMetrics;
use apus_fs_core::server::ServerMetrics;

use crate::mailbox::Mailbox;

/// Time for the serving thread to report its counters; without an answer they are absent.
const READ_TIME: Duration = Duration::from_secs(2);

/// Publishes the counters of the thread with this mailbox, until the result is dropped.
pub(crate) fn publish<L, M>(
    mailbox: Arc<Mailbox<L>>,
    ask: impl Fn(SyncSender<M>) -> L + Send + Sync + 'static,
    families: impl Fn(&M) -> Vec<Family> + Send + Sync + 'static,
) -> PublishedMetrics
where
    L: Send + 'static,
    M: Send + 'static,
{
    publish_metrics(move || {
        let (sender, answer) = sync_channel(1);
        mailbox.send(ask(sender));
        answer.recv_timeout(READ_TIME).map(|metrics| families(&metrics)).unwrap_or_default()
    })
}

fn counter(name: &str, help: &str, value: u64) -> Family {
    Family::single(name, FamilyKind::Counter, help, value)
}

fn gauge(name: &str, help: &str, value: u64) -> Family {
    Family::single(name, FamilyKind::Gauge, help, value)
}

fn kinds<'a>(name: &str, help: &str, values: impl IntoIterator<Item = (&'a str, u64)>) -> Family {
    Family::labelled(name, "kind", FamilyKind::Counter, help, values)
}

fn leases(name: &str, shared: u64, exclusive: u64) -> Family {
    let values = [("shared", shared), ("exclusive", exclusive)];
    Family::labelled(name, "kind", FamilyKind::Gauge, "Leases held.", values)
}

/// Returns the families of a mount.
pub(crate) fn mount_families(metrics: &ClientMetrics) -> Vec<Family> {
    let status = &metrics.status;
    let operations = metrics.operations.iter().map(|(kind, count)| (kind.name(), *count));
    let calls = metrics.calls.iter().map(|(kind, count)| (kind.name(), *count));
    vec![
        kinds(
            "fs_mount_operations",
            "Operations of applications, as the kernel passes them on.",
            operations,
        ),
        counter(
            "fs_mount_cache_hits",
            "Operations that ended at once, from the cache or into the log, without waiting for the server.",
            metrics.cache_hits,
        ),
        kinds(
            "fs_mount_calls",
            "Calls to the server, repeated ones included. Divided by the operations: calls per operation.",
            calls,
        ),
        counter(
            "fs_mount_batches",
            "Batches of changes that were sent, repeated ones included.",
            status.batches,
        ),
        counter(
            "fs_mount_batches_refused",
            "Batches that the server refused: changes are lost.",
            status.batches_refused,
        ),
        counter(
            "fs_mount_locks_lost",
            "Locks that could not be taken again after a restart of the server.",
            status.locks_lost,
        ),
        counter(
            "fs_mount_recalls",
            "Callbacks of the server that recalled leases.",
            status.recalls,
        ),
        leases("fs_mount_leases", status.shared, status.exclusive),
        gauge("fs_mount_nodes", "Nodes in the cache.", status.nodes),
        gauge("fs_mount_cached_bytes", "Bytes of files in the cache.", status.cached_bytes),
        gauge(
            "fs_mount_waiting_batches",
            "Batches of changes that are not at the server.",
            status.waiting_batches,
        ),
        gauge(
            "fs_mount_waiting_bytes",
            "Bytes of files that are not at the server.",
            status.waiting_bytes,
        ),
        gauge("fs_mount_pending_operations", "Operations that have not ended.", status.pending),
        gauge(
            "fs_mount_outstanding_calls",
            "Calls to which the server has not responded.",
            status.outstanding,
        ),
        gauge(
            "fs_mount_pending_recalls",
            "Recalls that have not been answered.",
            status.recalls_pending,
        ),
        gauge(
            "fs_mount_server_responds",
            "1 if the server responds, else 0.",
            u64::from(status.is_live),
        ),
    ]
}

/// Returns the families of a service.
pub(crate) fn server_families(metrics: &ServerMetrics) -> Vec<Family> {
    let store = &metrics.store;
    let requests = metrics.requests.iter().map(|(kind, count)| (kind.name(), *count));
    vec![
        kinds("fs_server_requests", "Requests of clients.", requests),
        counter("fs_server_batches", "Batches of changes that were applied.", metrics.batches),
        counter(
            "fs_server_commits",
            "Commits: each made one or several batches durable together.",
            store.commits,
        ),
        counter(
            "fs_server_log_syncs",
            "Times that the log was made durable by fdatasync.",
            store.log_syncs,
        ),
        counter(
            "fs_server_checkpoints",
            "Times that the whole directory was made durable, and a new log begun.",
            store.checkpoints,
        ),
        counter("fs_server_recalls", "Callbacks to clients that recalled leases.", metrics.recalls),
        gauge("fs_server_sessions", "Sessions of clients.", metrics.sessions),
        leases("fs_server_leases", metrics.shared, metrics.exclusive),
        gauge(
            "fs_server_waiting_requests",
            "Requests that wait until another client has given back a lease.",
            metrics.waiting,
        ),
        gauge("fs_server_log_bytes", "Bytes of the log.", store.log_bytes),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(families: &[Family]) -> String {
        let row = |family: &Family| {
            let label = family
                .label
                .as_ref()
                .map_or_else(String::new, |label| format!(".{}", label.to_uppercase()));
            let kind = if family.kind == FamilyKind::Counter { "counter" } else { "gauge" };
            format!("| `{}{label}` | {kind} | {} |\n", family.name, family.help)
        };
        let head = "| name | kind | meaning |\n|---|---|---|\n";
        head.to_owned() + &families.iter().map(row).collect::<String>()
    }

    /// `APUS_WRITE_DOCS=1 cargo test -p apus-fs --lib metrics` writes the page.
    #[test]
    fn the_page_about_metrics_says_what_the_code_says() {
        let page = format!(
            "{}\n## A mount\n\n{}\n## A server\n\n{}",
            include_str!("metrics_head.txt"),
            rows(&mount_families(&ClientMetrics::default())),
            rows(&server_families(&ServerMetrics::default())),
        );
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fs/metrics.md");
        if std::env::var_os("APUS_WRITE_DOCS").is_some() {
            std::fs::write(path, &page).unwrap();
        }
        let Ok(found) = std::fs::read_to_string(path) else {
            eprintln!("SKIPPED: no docs/fs/metrics.md; this is not a checkout of the workspace");
            return;
        };
        assert!(
            found == page,
            "docs/fs/metrics.md is not what the code says; see this test's comment"
        );
    }
}
