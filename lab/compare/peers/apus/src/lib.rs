//! apus: an endpoint on each side, over UDP as between hosts, in the clear or sealed, or through
//! shared memory.

use std::net::SocketAddr;
use std::vec;

use apus::security::Security;
use apus::{Bytes, Closed, Completion, Cork, Endpoint, EndpointBuilder, PollMode};
use compare_kit::{
    Class, Client, Connection, Connector, Description, Error, Peer, Server, ThrowAwayKeys, Wait,
    Waits, Work, answer, connections,
};

/// Maximum messages received per call.
const AT_ONCE: usize = 64;

/// apus, optionally with sealed packets or with memory shared between processes.
#[derive(Debug)]
pub struct Apus<const SEALED: bool, const SHARED: bool>;

/// Packets in the clear.
pub type Clear = Apus<false, false>;
/// Sealed packets.
pub type Sealed = Apus<true, false>;
/// Shared memory.
pub type SameHost = Apus<false, true>;

impl<const SEALED: bool, const SHARED: bool> Peer for Apus<SEALED, SHARED> {
    fn describe() -> Description {
        let (name, class, way) = if SHARED {
            let way = "through shared memory, as it does by default between processes of a user";
            ("apus-local", Class::SameHost, way)
        } else if SEALED {
            let way = "over UDP without shared memory, every packet sealed under keys of TLS 1.3 with ring";
            ("apus-sealed", Class::Sealed, way)
        } else {
            ("apus", Class::Clear, "over UDP without shared memory, in the clear")
        };
        Description {
            name: name.to_owned(),
            package: None,
            settings: format!("one endpoint on each side, {way}; messages that are ready leave together (cork)"),
            advice: "threads that wait poll, and a cork where many calls are outstanding (docs/tuning.md)".to_owned(),
            waits: Waits::Both,
            longest: None,
            is_node: !SHARED,
            grows: !SHARED,
            class,
        }
    }

    fn serve(server: &mut Server<'_>) -> Result<(), Error> {
        let endpoint = open::<SEALED, SHARED>(server.wait, server.keys).bind(server.bind)?;
        let ended = endpoint.clone();
        server.stop().wake_with(move || ended.shutdown());
        server.ready(endpoint.local_addr())?;
        let _together = endpoint.cork();
        let mut requests = Vec::with_capacity(AT_ONCE);
        loop {
            match endpoint.recv_requests(&mut requests, AT_ONCE) {
                Ok(_) => {}
                Err(Closed::ShutDown) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            for mut request in requests.drain(..) {
                let payload = request.take_payload();
                // A client that has ended needs no reply.
                let _ = match answer(&payload) {
                    Some(receipt) => request.reply(receipt.to_vec()),
                    None => request.reply(payload),
                };
            }
        }
    }

    fn client(client: &Client) -> Result<Box<dyn Connector>, Error> {
        let endpoint = open::<SEALED, SHARED>(client.wait, &client.keys).client()?;
        if let Work::RoundTrips { .. } = client.work {
            return Ok(connections(move |server| {
                Ok(Calls { endpoint: endpoint.clone(), server, request: Bytes::new() })
            }));
        }
        // Leaked: the endpoint and the cork exist until the process exits.
        let endpoint: &'static Endpoint = Box::leak(Box::new(endpoint));
        Ok(connections(move |server| {
            let ends = Vec::new().into_iter();
            Ok(Outstanding { endpoint, _together: endpoint.cork(), server, ends })
        }))
    }
}

/// An endpoint to be.
fn open<const SEALED: bool, const SHARED: bool>(
    wait: Wait,
    keys: &ThrowAwayKeys,
) -> EndpointBuilder {
    let mode = match wait {
        Wait::Spin => PollMode::Spin,
        Wait::Block => PollMode::Block,
    };
    let builder = Endpoint::builder().local(SHARED).poll_mode(mode);
    if SEALED { builder.security(Security::new(keys.security())) } else { builder }
}

/// Calls that wait for their replies.
struct Calls {
    endpoint: Endpoint,
    server: SocketAddr,
    request: Bytes,
}

impl Connection for Calls {
    fn send(&mut self, request: &[u8]) -> Result<(), Error> {
        self.request = Bytes::copy_from_slice(request);
        Ok(())
    }

    fn receive(&mut self, reply: &mut Vec<u8>) -> Result<(), Error> {
        let request = std::mem::take(&mut self.request);
        reply.extend_from_slice(&self.endpoint.call(self.server, request)?);
        Ok(())
    }
}

/// Outstanding calls; their replies are received together.
struct Outstanding {
    endpoint: &'static Endpoint,
    _together: Cork<'static>,
    server: SocketAddr,
    ends: vec::IntoIter<Completion>,
}

impl Connection for Outstanding {
    fn send(&mut self, request: &[u8]) -> Result<(), Error> {
        self.endpoint.send(self.server, Bytes::copy_from_slice(request), 0)?;
        Ok(())
    }

    fn receive(&mut self, reply: &mut Vec<u8>) -> Result<(), Error> {
        loop {
            if let Some(end) = self.ends.next() {
                reply.extend_from_slice(&end.result?);
                return Ok(());
            }
            let mut ends = Vec::with_capacity(AT_ONCE);
            self.endpoint.recv_completions(&mut ends, AT_ONCE)?;
            self.ends = ends.into_iter();
        }
    }
}
