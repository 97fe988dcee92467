//! ZeroMQ: a DEALER calls a ROUTER, over TCP or a Unix socket.

use std::mem::replace;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};

use compare_kit::{
    Class, Client, Connection, Connector, Description, Error, Peer, Server, Waits, answer,
    connections, free_address, name_of,
};
use zmq::{Context, DEALER, DONTWAIT, Message, ROUTER, Socket};

/// ZeroMQ between hosts, or between processes of one host.
#[derive(Debug)]
pub struct ZeroMq<const SAME_HOST: bool>;

impl<const SAME_HOST: bool> Peer for ZeroMq<SAME_HOST> {
    fn describe() -> Description {
        let (name, class, way) = if SAME_HOST {
            ("zeromq-ipc", Class::SameHost, "a Unix socket")
        } else {
            ("zeromq", Class::Clear, "TCP")
        };
        let (major, minor, patch) = zmq::version();
        Description {
            name: name.to_owned(),
            package: Some("zmq".to_owned()),
            settings: format!("libzmq {major}.{minor}.{patch}, DEALER and ROUTER, one IO thread on each side, {way}"),
            advice: "its guide recommends DEALER and ROUTER for many requests at once, and one IO thread for each gigabyte a second; TCP_NODELAY is its default"
                .to_owned(),
            // With polling, its IO thread would wait for the core used by the polling thread.
            waits: Waits::Block,
            longest: None,
            is_node: !SAME_HOST,
            grows: !SAME_HOST,
            class,
        }
    }

    fn serve(server: &mut Server<'_>) -> Result<(), Error> {
        let context = Context::new();
        let socket = context.socket(ROUTER)?;
        // libzmq does not accept bound sockets.
        let address = free_address(server.bind)?;
        socket.bind(&url(address, SAME_HOST))?;
        // Ends the socket's receive.
        server.stop().wake_with(move || {
            let _ = context.clone().destroy();
        });
        server.ready(address)?;
        let (mut client, mut request) = (Message::new(), Message::new());
        loop {
            match socket.recv(&mut client, 0) {
                Ok(()) => {}
                Err(zmq::Error::ETERM) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            socket.recv(&mut request, 0)?;
            let receipt = answer(&request);
            let reply = receipt
                .map_or_else(|| replace(&mut request, Message::new()), |it| Message::from(&it[..]));
            socket.send(replace(&mut client, Message::new()), zmq::SNDMORE)?;
            socket.send(reply, 0)?;
        }
    }

    fn client(_: &Client) -> Result<Box<dyn Connector>, Error> {
        let (mut context, mut sockets) = (Context::new(), 0);
        Ok(connections(move |server| {
            if sockets == SOCKETS {
                (context, sockets) = (Context::new(), 0);
            }
            sockets += 1;
            let socket = context.socket(DEALER)?;
            // Messages queued at the end of the measurement are discarded.
            socket.set_linger(0)?;
            socket.connect(&url(server, SAME_HOST))?;
            Ok(Dealer { socket, message: Message::new() })
        }))
    }
}

/// Sockets of a context; libzmq allows 1,023.
const SOCKETS: usize = 1_000;

/// A client's socket.
struct Dealer {
    socket: Socket,
    message: Message,
}

impl Connection for Dealer {
    fn send(&mut self, request: &[u8]) -> Result<(), Error> {
        Ok(self.socket.send(request, 0)?)
    }

    fn receive(&mut self, reply: &mut Vec<u8>) -> Result<(), Error> {
        self.socket.recv(&mut self.message, 0)?;
        reply.extend_from_slice(&self.message);
        Ok(())
    }

    fn try_receive(&mut self, reply: &mut Vec<u8>) -> Result<bool, Error> {
        match self.socket.recv(&mut self.message, DONTWAIT) {
            Ok(()) => reply.extend_from_slice(&self.message),
            Err(zmq::Error::EAGAIN) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }

    fn descriptor(&self) -> Option<RawFd> {
        Some(self.socket.as_raw_fd())
    }
}

fn url(address: SocketAddr, is_same_host: bool) -> String {
    // Names that start with @ are not files.
    if is_same_host { format!("ipc://@{}", name_of(address)) } else { format!("tcp://{address}") }
}
