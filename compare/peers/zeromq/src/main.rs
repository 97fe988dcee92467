//! ZeroMQ: a DEALER calls a ROUTER over TCP.

use std::mem::replace;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, RawFd};
use std::process::ExitCode;

use compare_kit::{
    Client, Connection, Connector, Description, Error, Peer, Server, Waits, answer, connections,
    run,
};
use zmq::{Context, DEALER, DONTWAIT, Message, ROUTER, Socket};

struct ZeroMq;

impl Peer for ZeroMq {
    fn describe() -> Description {
        Description {
            name: "zeromq".to_owned(),
            package: Some("zmq".to_owned()),
            settings: "libzmq of the system, DEALER and ROUTER, one IO thread on each side, TCP"
                .to_owned(),
            advice: "its guide recommends DEALER and ROUTER for many requests at once, and one IO thread for each gigabyte a second; TCP_NODELAY is its default"
                .to_owned(),
            // Its IO thread would wait for the core on which the other one polls.
            waits: Waits::Block,
            longest: None,
            is_node: true,
            is_sealed: false,
        }
    }

    fn serve(server: &mut Server<'_>) -> Result<(), Error> {
        let context = Context::new();
        let socket = context.socket(ROUTER)?;
        let address = free_address(server.bind)?;
        socket.bind(&url(address))?;
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
            // What waits to be sent when the measurement ends is not sent any more.
            socket.set_linger(0)?;
            socket.connect(&url(server))?;
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

/// An address that no other socket has. libzmq takes no socket that is bound already.
fn free_address(bind: SocketAddr) -> Result<SocketAddr, Error> {
    Ok(TcpListener::bind(bind)?.local_addr()?)
}

fn url(address: SocketAddr) -> String {
    format!("tcp://{address}")
}

fn main() -> ExitCode {
    run::<ZeroMq>()
}
