//! UCX: active messages between workers, over TCP or through shared memory.

mod ffi;

use std::ffi::CStr;
use std::time::Duration;

use compare_kit::{
    Caller, Class, Client, Connector, Description, Error, MAX_LENGTH, Peer, Server, Wait, Waits,
    answer, caller, free_address,
};

use ffi::{Endpoint, Side};

/// UCX between hosts, or between processes of one host.
#[derive(Debug)]
pub struct Ucx<const SAME_HOST: bool>;

impl<const SAME_HOST: bool> Ucx<SAME_HOST> {
    /// UCX transports. Connections are established over TCP.
    const TRANSPORTS: &CStr = if SAME_HOST { c"shm,tcp" } else { c"tcp" };
}

impl<const SAME_HOST: bool> Peer for Ucx<SAME_HOST> {
    fn describe() -> Description {
        let (name, class) =
            if SAME_HOST { ("ucx-shm", Class::SameHost) } else { ("ucx", Class::Clear) };
        Description {
            name: name.to_owned(),
            package: None,
            settings: format!(
                "UCX {} of the system, active messages, one worker on each side and an endpoint for each connection, UCX_TLS={}",
                ffi::version(),
                Self::TRANSPORTS.to_string_lossy()
            ),
            advice: "its documentation recommends to poll a worker of one thread; where others sleep, it waits for the worker's file descriptor"
                .to_owned(),
            waits: Waits::Both,
            longest: Some(MAX_LENGTH),
            is_node: !SAME_HOST,
            grows: !SAME_HOST,
            class,
        }
    }

    fn serve(server: &mut Server<'_>) -> Result<(), Error> {
        let address = free_address(server.bind)?;
        let mut side = Side::open(Self::TRANSPORTS)?;
        side.listen(address)?;
        server.ready(address)?;
        while !server.stop().is_asked() {
            if let Some(request) = side.receive(server.wait, None) {
                let receipt = answer(request.bytes());
                let reply = receipt.as_ref().map_or(request.bytes(), |receipt| &receipt[..]);
                // A client that has ended needs no reply.
                let _ = request.from().send(request.call(), reply);
            }
        }
        Ok(())
    }

    fn client(client: &Client) -> Result<Box<dyn Connector>, Error> {
        let wait = client.wait;
        Ok(caller(move |servers| {
            let mut side = Side::open(Self::TRANSPORTS)?;
            let servers = servers.iter().map(|&server| side.connect(server));
            let servers = servers.collect::<Result<_, _>>()?;
            Ok(Calls { side, servers, wait })
        }))
    }
}

/// Calls of a client.
struct Calls {
    side: Side,
    servers: Vec<Endpoint>,
    wait: Wait,
}

impl Caller for Calls {
    fn send(&mut self, server: usize, call: u64, request: &[u8]) -> Result<(), Error> {
        self.servers[server].send(call, request)
    }

    fn receive(
        &mut self,
        wait: Option<Duration>,
        reply: &mut Vec<u8>,
    ) -> Result<Option<u64>, Error> {
        let message = self.side.receive(self.wait, wait);
        Ok(message.map(|message| {
            reply.extend_from_slice(message.bytes());
            message.call()
        }))
    }
}
