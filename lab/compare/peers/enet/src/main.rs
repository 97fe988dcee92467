//! ENet: a reliable packet over UDP for each message.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::process::ExitCode;
use std::time::Duration;

use compare_kit::{
    Caller, Class, Client, Connector, Description, Error, InOrder, Peer, Server, Wait, Waits,
    answer, caller, run,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rusty_enet::{Event, Host, HostSettings, Packet, PeerID};

/// The only channel.
const CHANNEL: u8 = 0;
/// Maximum clients of a server, as in ENet's tutorial. A host allocates all of them up front and
/// visits each at every service call.
const CLIENTS: usize = 32;
/// Maximum sleep before timers are handled. ENet's documentation uses up to a second, but replies
/// would wait for acknowledgments meanwhile.
const CYCLE: Duration = Duration::from_millis(5);

struct Enet;

impl Peer for Enet {
    fn describe() -> Description {
        Description {
            name: "enet".to_owned(),
            package: Some("rusty_enet".to_owned()),
            settings: "ENet 1.3.18 in Rust, a host on each side, one channel, reliable packets, a poll of the socket where others sleep"
                .to_owned(),
            advice: "its tutorial has nothing on latency but to service a host often".to_owned(),
            waits: Waits::Both,
            longest: None,
            is_node: true,
            grows: false,
            class: Class::Clear,
        }
    }

    fn serve(server: &mut Server<'_>) -> Result<(), Error> {
        let mut side = Side::open(server.bind, CLIENTS, server.wait)?;
        let address = side.socket.local_addr()?;
        let waker = side.socket.try_clone()?;
        // ENet drops the datagram, because it is too short.
        server.stop().wake_with(move || drop(waker.send_to(&[0], address)));
        server.ready(address)?;
        while !server.stop().is_asked() {
            let Some(event) = side.host.service()? else {
                side.wait(CYCLE)?;
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
        Ok(caller(move |servers| {
            let mut side = Side::open(bind, servers.len(), wait)?;
            let connect = |&server| Ok(side.host.connect(server, 1, 0)?.id());
            let servers = servers.iter().map(connect).collect::<Result<Vec<_>, Error>>()?;
            let mut missing = servers.len();
            while missing > 0 {
                match side.host.service()? {
                    Some(Event::Connect { .. }) => missing -= 1,
                    Some(_) => return Err("a server refuses the connection".into()),
                    None => side.wait(CYCLE)?,
                }
            }
            Ok(Calls { side, order: InOrder::new(servers.len()), servers })
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
    fn open(bind: SocketAddr, peers: usize, wait: Wait) -> Result<Self, Error> {
        let socket = UdpSocket::bind(bind)?;
        let settings = HostSettings { peer_limit: peers, channel_limit: 1, ..Default::default() };
        let host = Host::new(socket.try_clone()?, settings)?;
        Ok(Self { host, socket, wait })
    }

    /// Waits until a packet arrives, or a timer may be due, for up to `time`.
    fn wait(&self, time: Duration) -> io::Result<()> {
        match self.wait {
            Wait::Spin => std::hint::spin_loop(),
            Wait::Block => {
                let nanos = time.min(CYCLE).as_nanos() as i64;
                let time = Timespec { tv_sec: 0, tv_nsec: nanos };
                poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&time))?;
            }
        }
        Ok(())
    }
}

/// Calls of a client.
struct Calls {
    side: Side,
    servers: Vec<PeerID>,
    order: InOrder,
}

impl Caller for Calls {
    fn send(&mut self, server: usize, call: u64, request: &[u8]) -> Result<(), Error> {
        self.order.add(server, call);
        let peer = self.side.host.peer_mut(self.servers[server]);
        Ok(peer.send(CHANNEL, &Packet::reliable(request))?)
    }

    fn receive(
        &mut self,
        wait: Option<Duration>,
        reply: &mut Vec<u8>,
    ) -> Result<Option<u64>, Error> {
        match self.side.host.service()? {
            Some(Event::Receive { peer, packet, .. }) => {
                reply.extend_from_slice(packet.data());
                let server = self.servers.iter().position(|&it| it == peer.id());
                Ok(Some(self.order.take(server.ok_or("a reply of an unknown server")?)?))
            }
            Some(_) => Err("a server has ended the connection".into()),
            None => {
                self.side.wait(wait.unwrap_or(CYCLE))?;
                Ok(None)
            }
        }
    }
}

fn main() -> ExitCode {
    run::<Enet>()
}
