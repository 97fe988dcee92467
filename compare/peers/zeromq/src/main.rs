//! ZeroMQ: a DEALER calls a ROUTER over TCP.

use std::mem::replace;
use std::net::{SocketAddr, TcpListener};
use std::process::ExitCode;

use compare_kit::{
    Client, Connection, Description, Error, Measured, Peer, Server, Wait, Waits, answer,
    measure_connection, run,
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
            waits: Waits::Both,
            longest: None,
            is_sealed: false,
        }
    }

    fn serve(server: &mut Server<'_>) -> Result<(), Error> {
        let context = Context::new();
        let socket = context.socket(ROUTER)?;
        let address = free_address()?;
        socket.bind(&url(address))?;
        // Ends the socket's receive.
        server.stop().wake_with(move || {
            let _ = context.clone().destroy();
        });
        server.ready(address)?;
        let (flags, stop) = (flags(server.wait), server.stop());
        let (mut client, mut request) = (Message::new(), Message::new());
        loop {
            match receive(&socket, &mut client, flags, || stop.is_asked()) {
                Ok(true) => {}
                Ok(false) | Err(zmq::Error::ETERM) => return Ok(()),
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

    fn measure(client: &Client) -> Result<Measured, Error> {
        let socket = Context::new().socket(DEALER)?;
        // What waits to be sent when the measurement ends is not sent any more.
        socket.set_linger(0)?;
        socket.connect(&url(client.server))?;
        let (flags, message) = (flags(client.wait), Message::new());
        measure_connection(client, &mut Dealer { socket, flags, message })
    }
}

/// A client's socket.
struct Dealer {
    socket: Socket,
    flags: i32,
    message: Message,
}

impl Connection for Dealer {
    fn send(&mut self, request: &[u8]) -> Result<(), Error> {
        Ok(self.socket.send(request, 0)?)
    }

    fn receive(&mut self, reply: &mut Vec<u8>) -> Result<(), Error> {
        receive(&self.socket, &mut self.message, self.flags, || false)?;
        reply.extend_from_slice(&self.message);
        Ok(())
    }
}

/// Receives a message; `false` if `is_over` says so before one has come.
fn receive(
    socket: &Socket,
    message: &mut Message,
    flags: i32,
    is_over: impl Fn() -> bool,
) -> Result<bool, zmq::Error> {
    loop {
        match socket.recv(message, flags) {
            Ok(()) => return Ok(true),
            Err(zmq::Error::EAGAIN) if is_over() => return Ok(false),
            Err(zmq::Error::EAGAIN) => std::hint::spin_loop(),
            Err(zmq::Error::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
}

const fn flags(wait: Wait) -> i32 {
    match wait {
        Wait::Spin => DONTWAIT,
        Wait::Block => 0,
    }
}

/// An address that no other socket has. libzmq takes no socket that is bound already.
fn free_address() -> Result<SocketAddr, Error> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

fn url(address: SocketAddr) -> String {
    format!("tcp://{address}")
}

fn main() -> ExitCode {
    run::<ZeroMq>()
}
