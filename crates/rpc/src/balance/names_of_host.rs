//! Addresses of servers from DNS.

use super::servers::{Servers, Watching};
use hickory_resolver::TokioResolver;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Times between two look-ups, whatever the records say: a TTL of 0 is no reason to ask all the time, and a long one none to
/// overlook a new server for an hour.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);

/// Why a name has no addresses.
#[derive(Debug, thiserror::Error)]
#[error("resolve {name}: {reason}")]
pub struct DnsError {
    name: String,
    reason: String,
}

/// Returns the servers at all addresses of a host, at `port`. The name is looked up again when its records expire, at least every
/// minute. While that fails, the last addresses stay.
///
/// # Errors
///
/// [`DnsError`]: the system's configuration cannot be read, or the name has no addresses now.
///
/// # Panics
///
/// Outside of a tokio runtime with IO and time enabled.
pub async fn dns(host: &str, port: u16) -> Result<Servers, DnsError> {
    let error = |reason: String| DnsError { name: host.to_owned(), reason };
    let resolver = TokioResolver::builder_tokio()
        .map_err(|cause| error(cause.to_string()))?
        .build()
        .map_err(|cause| error(cause.to_string()))?;
    let (found, mut again) =
        look_up(&resolver, host, port).await.map_err(|cause| error(cause.to_string()))?;
    let (sender, addresses) = watch::channel(found);
    let host = host.to_owned();
    let task = tokio::spawn(async move {
        loop {
            tokio::time::sleep(again).await;
            let Ok((found, next)) = look_up(&resolver, &host, port).await else {
                again = SHORTEST;
                continue;
            };
            again = next;
            sender.send_if_modified(|known| {
                let changed = *known != found;
                *known = found;
                changed
            });
        }
    });
    Ok(Servers { addresses, _task: Some(Watching(task)) })
}

/// Returns the addresses of a host, sorted, and the time after which to look again.
async fn look_up(
    resolver: &TokioResolver,
    host: &str,
    port: u16,
) -> Result<(Vec<SocketAddr>, Duration), hickory_resolver::net::NetError> {
    let answer = resolver.lookup_ip(host).await?;
    let mut found: Vec<SocketAddr> =
        answer.iter().map(|address| SocketAddr::new(address, port)).collect();
    // Servers of names rotate their answers, which is no change.
    found.sort_unstable();
    found.dedup();
    let left = answer.valid_until().saturating_duration_since(Instant::now());
    Ok((found, left.clamp(SHORTEST, LONGEST)))
}
