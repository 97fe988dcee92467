//! Path of an endpoint's messages: selection and verification.

use std::time::{Duration, Instant};

use apus::{Endpoint, EndpointBuilder, RawConfig, Settings};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::plan::Plan;

/// Path of messages between two endpoints of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Path {
    /// UDP, as between hosts.
    Udp,
    /// Raw IP, as to hosts with the kernel module.
    Raw,
    /// Shared memory, the endpoints' default choice.
    Local,
}

impl Path {
    /// Returns the path to use for `plan`, which selects the protocol between hosts.
    pub fn of(self, plan: &Plan) -> Self {
        if plan.raw && self == Self::Udp { Self::Raw } else { self }
    }
}

/// Returns an endpoint builder for this path (EXCHANGE-1).
pub fn builder(path: Path) -> EndpointBuilder {
    configured(&Settings::default(), path)
}

/// Returns an endpoint builder for this path with the given settings.
///
/// Calls have no timeout, like the sockets in the comparison.
pub fn configured(settings: &Settings, path: Path) -> EndpointBuilder {
    let builder = Endpoint::builder().settings(settings).call_timeout(Duration::MAX);
    let builder = builder.local(path == Path::Local);
    if path == Path::Raw { builder.raw(RawConfig::default()) } else { builder }
}

/// Time limit for the agreement on shared memory. Chosen by us: ten thousand times its usual
/// duration.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Makes calls until one uses shared memory: the first calls use the network while the two
/// endpoints perform their handshake. This corresponds to `connect` of a socket, so it is not
/// measured.
pub fn connect_local(
    client: &Endpoint,
    mut call: impl FnMut() -> Result<(), Error>,
) -> Result<(), Error> {
    let began = Instant::now();
    while client.metrics().engine.local_calls == 0 {
        if began.elapsed() > HANDSHAKE_TIMEOUT {
            return Err(Error::Peer("the server shares no memory with its client".to_owned()));
        }
        call()?;
    }
    Ok(())
}

/// Checks that all `calls` calls took this path (EXCHANGE-2).
pub fn check(path: Path, endpoint: &Endpoint, calls: u64) -> Result<(), Error> {
    let engine = endpoint.metrics().engine;
    let local = engine.local_calls - engine.local_fallbacks;
    match path {
        Path::Local if local < calls => {
            Err(Error::Peer(format!("only {local} of {calls} calls went through shared memory")))
        }
        Path::Udp | Path::Raw if engine.local_calls > 0 => Err(Error::Peer(format!(
            "{local} calls went through shared memory, not over the network"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::{client, open, server};
    use apus::Bytes;
    use std::net::SocketAddr;
    use std::thread;

    /// Runs `drive` with a client that chooses its path and a server on `path`.
    fn with_server<T>(path: Path, drive: impl FnOnce(&Endpoint, SocketAddr) -> T) -> T {
        let serving = open(builder(path)).unwrap();
        let client = open(builder(Path::Local).serve(false)).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| server::echo(&serving).unwrap());
            let driven = drive(&client, serving.local_addr());
            serving.shutdown();
            driven
        })
    }

    #[test]
    fn messages_on_another_path_are_an_error() {
        let calls = |client: &Endpoint, server| {
            (0..10).for_each(|_| drop(client.call(server, "x").unwrap()));
            [Path::Local, Path::Udp]
                .map(|path| check(path, client, 10).map_err(|it| it.to_string()))
        };
        let [local, udp] = with_server(Path::Udp, calls);
        assert_eq!(local.unwrap_err(), "only 0 of 10 calls went through shared memory");
        udp.unwrap();

        let [local, udp] = with_server(Path::Local, |client, server| {
            connect_local(client, || client::call(client, server, &Bytes::from("x")).map(drop))
                .unwrap();
            calls(client, server)
        });
        local.unwrap();
        assert!(
            udp.unwrap_err().ends_with("calls went through shared memory, not over the network")
        );
    }
}
