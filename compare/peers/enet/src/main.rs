//! ENet: a reliable packet over UDP for each message.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::process::ExitCode;

use compare_kit::{
    Class, Client, Connection, Connector, Description, Error, Peer, Server, Wait, Waits, answer,
    connections, run,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rusty_enet::{Event, Host, HostSettings, Packet, PeerID};

/// The only channel.
const CHANNEL: u8 = 0;
/// Longest sleep, after which timers are due: 5 ms, as ENet waits in its examples at most.
const CYCLE: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };

struct Enet;

impl Peer for Enet {
    fn describe() -> Description {
        Description {
            name: "enet".to_owned(),
            package: Some("rusty_enet".to_owned()),
            settings: "ENet 1.3.18 in Rust, one connection, one channel, reliable packets, a poll of the socket where others sleep"
                .to_owned(),
            advice: "its tutorial has nothing on latency but to service a host often".to_owned(),
            waits: Waits::Both,
            longest: None,
            is_node: false,
            class: Class::Clear,
        }
    }

    fn serve(server: &mut Server<'_>) -> Result<(), Error> {
        let mut side = Side::open(server.bind, server.wait)?;
        let address = side.socket.local_addr()?;
        let waker = side.socket.try_clone()?;
        // ENet drops it, because it is too short.
        server.stop().wake_with(move || drop(waker.send_to(&[0], address)));
        server.ready(address)?;
        while !server.stop().is_asked() {
            let Some(event) = side.host.service()? else {
                side.wait()?;
                continue;
            };
            if let Event::Receive { peer, packet, .. } = event {
                let receipt = answer(packet.data());
                let reply = receipt.as_ref().map_or(packet.data(), |receipt| &receipt[..]);
                peer.send(CHANNEL, &Packet::reliable(reply))?;
            }
        }
        Ok(())
    }

    fn client(client: &Client) -> Result<Box<dyn Connector>, Error> {
        let (bind, wait) = (client.bind, client.wait);
        Ok(connections(move |server| {
            let mut side = Side::open(bind, wait)?;
            let server = side.host.connect(server, 1, 0)?.id();
            loop {
                match side.host.service()? {
                    Some(Event::Connect { .. }) => return Ok(Calls { side, server }),
                    Some(_) => return Err("the server refuses the connection".into()),
                    None => side.wait()?,
                }
            }
        }))
    }
}

/// A host, and its socket.
struct Side {
    host: Host<UdpSocket>,
    socket: UdpSocket,
    wait: Wait,
}

impl Side {
    fn open(bind: SocketAddr, wait: Wait) -> Result<Self, Error> {
        let socket = UdpSocket::bind(bind)?;
        let host = Host::new(socket.try_clone()?, HostSettings::default())?;
        Ok(Self { host, socket, wait })
    }

    /// Waits until a packet arrives, or a timer may be due.
    fn wait(&self) -> io::Result<()> {
        match self.wait {
            Wait::Spin => std::hint::spin_loop(),
            Wait::Block => {
                poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&CYCLE))?;
            }
        }
        Ok(())
    }
}

/// Calls of a client.
struct Calls {
    side: Side,
    server: PeerID,
}

impl Connection for Calls {
    fn send(&mut self, request: &[u8]) -> Result<(), Error> {
        self.side.host.peer_mut(self.server).send(CHANNEL, &Packet::reliable(request))?;
        Ok(())
    }

    fn receive(&mut self, reply: &mut Vec<u8>) -> Result<(), Error> {
        loop {
            match self.side.host.service()? {
                Some(Event::Receive { packet, .. }) => {
                    reply.extend_from_slice(packet.data());
                    return Ok(());
                }
                Some(_) => return Err("the server has ended the connection".into()),
                None => self.side.wait()?,
            }
        }
    }
}

fn main() -> ExitCode {
    run::<Enet>()
}
