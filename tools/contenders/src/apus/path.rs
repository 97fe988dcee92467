//! Which way do an endpoint's messages go, and did they?

use std::time::{Duration, Instant};

use apus::{Endpoint, EndpointBuilder, RawConfig, Settings};

use crate::contender::Plan;
use apus_testbed::error::Error;

/// Where messages go between two endpoints of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Over UDP, as between hosts.
    Udp,
    /// Over raw IP, as to hosts with the kernel module.
    Raw,
    /// Where the endpoints choose: through shared memory.
    Local,
}

impl Path {
    /// The way to take when `plan` says what there is between hosts.
    pub(crate) fn of(self, plan: &Plan) -> Self {
        if plan.raw && self == Self::Udp { Self::Raw } else { self }
    }
}

/// The settings of an endpoint whose messages go that way (P1).
pub fn builder(path: Path) -> EndpointBuilder {
    configured(&Settings::default(), path)
}

/// The same, set up in another way than by default.
pub fn configured(settings: &Settings, path: Path) -> EndpointBuilder {
    let builder = settings.builder().local(path == Path::Local);
    if path == Path::Raw { builder.raw(RawConfig::default()) } else { builder }
}

/// How long two endpoints may take to agree on shared memory. Ours: ten thousand times what they take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Makes calls until one goes through shared memory: the first ones go over the network while the two endpoints greet
/// each other. It is what `connect` is for a socket, so it does not count.
pub fn meet(client: &Endpoint, mut call: impl FnMut() -> Result<(), Error>) -> Result<(), Error> {
    let began = Instant::now();
    while client.metrics().engine.local_calls == 0 {
        if began.elapsed() > PATIENCE {
            return Err(Error::Peer("the server shares no memory with its client".to_owned()));
        }
        call()?;
    }
    Ok(())
}

/// Whether all of `calls` calls went that way (P2).
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
    use crate::apus::{client, open, server};
    use apus::Bytes;
    use std::net::SocketAddr;
    use std::thread;

    /// A server on this path, and what `drive` says of a client that goes by itself.
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
    fn what_went_another_way_than_it_was_said_to_is_an_error() {
        let calls = |client: &Endpoint, server| {
            (0..10).for_each(|_| drop(client.call(server, "x").unwrap()));
            [Path::Local, Path::Udp]
                .map(|path| check(path, client, 10).map_err(|it| it.to_string()))
        };
        let [local, udp] = with_server(Path::Udp, calls);
        assert_eq!(local.unwrap_err(), "only 0 of 10 calls went through shared memory");
        udp.unwrap();

        let [local, udp] = with_server(Path::Local, |client, server| {
            meet(client, || client::call(client, server, &Bytes::from("x")).map(drop)).unwrap();
            calls(client, server)
        });
        local.unwrap();
        assert!(
            udp.unwrap_err().ends_with("calls went through shared memory, not over the network")
        );
    }
}
