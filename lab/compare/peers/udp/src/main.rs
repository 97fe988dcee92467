//! Bare UDP sockets: one datagram per message, no retransmission. The lower bound for all protocols
//! over UDP.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::process::ExitCode;

use compare_kit::{
    Class, Client, Connection, Connector, Description, Error, Peer, Server, Wait, Waits, answer,
    connections, run, when_ready,
};

/// Maximum payload of a datagram over IPv4.
const LONGEST: usize = 65_507;

struct Udp;

impl Peer for Udp {
    fn describe() -> Description {
        Description {
            name: "udp".to_owned(),
            package: None,
            settings: "one unconnected socket on each side, sendto and recvfrom".to_owned(),
            advice: "nothing is set: what is lost stays lost, and nothing is acknowledged"
                .to_owned(),
            waits: Waits::Both,
            longest: Some(LONGEST),
            is_node: false,
            grows: false,
            class: Class::Clear,
        }
    }

    fn serve(server: &mut Server<'_>) -> Result<(), Error> {
        let socket = open(server.bind, server.wait)?;
        let address = socket.local_addr()?;
        let waker = socket.try_clone()?;
        server.stop().wake_with(move || drop(waker.send_to(&[], address)));
        server.ready(address)?;
        let stop = server.stop();
        let mut buffer = vec![0; LONGEST];
        loop {
            let received = when_ready(|| socket.recv_from(&mut buffer), || stop.is_asked())?;
            let Some((length @ 1.., from)) = received else { return Ok(()) };
            let request = &buffer[..length];
            match answer(request) {
                Some(receipt) => socket.send_to(&receipt, from)?,
                None => socket.send_to(request, from)?,
            };
        }
    }

    fn client(client: &Client) -> Result<Box<dyn Connector>, Error> {
        let (bind, wait) = (client.bind, client.wait);
        Ok(connections(move |server| {
            Ok(Datagrams { socket: open(bind, wait)?, server, buffer: vec![0; LONGEST] })
        }))
    }
}

fn open(bind: SocketAddr, wait: Wait) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(bind)?;
    socket.set_nonblocking(wait == Wait::Spin)?;
    Ok(socket)
}

/// A client's socket.
struct Datagrams {
    socket: UdpSocket,
    server: SocketAddr,
    buffer: Vec<u8>,
}

impl Connection for Datagrams {
    fn send(&mut self, request: &[u8]) -> Result<(), Error> {
        when_ready(|| self.socket.send_to(request, self.server), || false)?;
        Ok(())
    }

    fn receive(&mut self, reply: &mut Vec<u8>) -> Result<(), Error> {
        let received = when_ready(|| self.socket.recv_from(&mut self.buffer), || false)?;
        let (length, _) = received.ok_or("the socket was closed")?;
        reply.extend_from_slice(&self.buffer[..length]);
        Ok(())
    }
}

fn main() -> ExitCode {
    run::<Udp>()
}
