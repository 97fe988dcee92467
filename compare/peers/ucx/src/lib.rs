//! UCX: tagged messages between two workers, over TCP or through shared memory.

mod ffi;

use std::ffi::CStr;

use compare_kit::{
    Class, Client, Connection, Connector, Description, Error, MAX_LENGTH, Peer, Server, Wait,
    Waits, answer, connections, free_address,
};

use ffi::Side;

/// UCX between hosts, or between processes of one.
#[derive(Debug)]
pub struct Ucx<const SAME_HOST: bool>;

impl<const SAME_HOST: bool> Ucx<SAME_HOST> {
    /// Its transports. Connections are made over TCP.
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
                "UCX {} of the system, tagged messages, one worker and one endpoint on each side, UCX_TLS={}",
                ffi::version(),
                Self::TRANSPORTS.to_string_lossy()
            ),
            advice: "its documentation recommends to poll a worker of one thread; where others sleep, it waits for the worker's file descriptor"
                .to_owned(),
            waits: Waits::Both,
            longest: Some(MAX_LENGTH),
            is_node: false,
            class,
        }
    }

    fn serve(server: &mut Server<'_>) -> Result<(), Error> {
        let address = free_address(server.bind)?;
        let mut side = Side::listen(Self::TRANSPORTS, address.port())?;
        server.ready(address)?;
        while !server.stop().is_asked() {
            if let Some(request) = side.receive(server.wait)? {
                let receipt = answer(&request);
                side.send(receipt.as_ref().map_or(&request[..], |receipt| &receipt[..]))?;
            }
        }
        Ok(())
    }

    fn client(client: &Client) -> Result<Box<dyn Connector>, Error> {
        let wait = client.wait;
        Ok(connections(move |server| {
            Ok(Calls { side: Side::connect(Self::TRANSPORTS, server.port())?, wait })
        }))
    }
}

/// Calls of a client.
struct Calls {
    side: Side,
    wait: Wait,
}

impl Connection for Calls {
    fn send(&mut self, request: &[u8]) -> Result<(), Error> {
        self.side.send(request)
    }

    fn receive(&mut self, reply: &mut Vec<u8>) -> Result<(), Error> {
        loop {
            if let Some(message) = self.side.receive(self.wait)? {
                *reply = message;
                return Ok(());
            }
        }
    }
}
