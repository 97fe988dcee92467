//! Addresses of servers from DNS.

use super::servers::{Servers, Watching};
use hickory_resolver::config::{NameServerConfig, ResolverConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::{ResolverBuilder, TokioResolver};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Bounds of the time between two look-ups: a TTL of 0 must not cause continuous queries, and a
/// long TTL must not hide a new server for an hour.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);

/// Reason why a name has no addresses.
#[derive(Debug, thiserror::Error)]
#[error("resolve {name}: {reason}")]
pub struct DnsError {
    name: String,
    reason: String,
}

/// Returns the servers at `port` of all addresses of a host, according to the system's name
/// servers. The name is looked up again when its records expire, at least every minute. While that
/// fails, the last addresses stay.
///
/// # Errors
///
/// [`DnsError`]: the system's configuration cannot be read, or the name has no addresses now.
///
/// # Panics
///
/// Outside of a tokio runtime with IO and time enabled.
pub async fn dns(host: &str, port: u16) -> Result<Servers, DnsError> {
    follow(TokioResolver::builder_tokio(), host, port).await
}

/// Returns the servers at `port` of all addresses of a host, according to the name server at
/// `name_server`, for example a cluster's. The name is looked up again as by [`dns`].
///
/// # Errors
///
/// [`DnsError`]: the name has no addresses now.
///
/// # Panics
///
/// Outside of a tokio runtime with IO and time enabled.
pub async fn dns_at(name_server: SocketAddr, host: &str, port: u16) -> Result<Servers, DnsError> {
    let mut server = NameServerConfig::udp_and_tcp(name_server.ip());
    for connection in &mut server.connections {
        connection.port = name_server.port();
    }
    let config = ResolverConfig::from_parts(None, Vec::new(), vec![server]);
    let builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    follow(Ok(builder), host, port).await
}

/// Looks up a host, and repeats that when its records expire.
async fn follow(
    builder: Result<ResolverBuilder<TokioRuntimeProvider>, NetError>,
    host: &str,
    port: u16,
) -> Result<Servers, DnsError> {
    let error = |cause: NetError| DnsError { name: host.to_owned(), reason: cause.to_string() };
    let resolver = builder.and_then(ResolverBuilder::build).map_err(error)?;
    let (found, mut again) = look_up(&resolver, host, port).await.map_err(error)?;
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

/// Returns the addresses of a host, sorted, and the time until the next look-up.
async fn look_up(
    resolver: &TokioResolver,
    host: &str,
    port: u16,
) -> Result<(Vec<SocketAddr>, Duration), NetError> {
    let answer = resolver.lookup_ip(host).await?;
    let mut found: Vec<SocketAddr> =
        answer.iter().map(|address| SocketAddr::new(address, port)).collect();
    // Name servers rotate their answers; that is no change.
    found.sort_unstable();
    found.dedup();
    let left = answer.valid_until().saturating_duration_since(Instant::now());
    Ok((found, left.clamp(SHORTEST, LONGEST)))
}
