//! The attacker: floods with raw sockets, or begins requests and does not go on.

use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

use apus_wire::{
    Body, Data, Dialect, Features, Flags, Header, HeaderBuffer, MAX_HEADER_LEN, Packet, Profile,
    Role, SenderId, UdpFields,
};
use etherparse::PacketBuilder;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto, sendto, socket};
use serde::{Deserialize, Serialize};

use super::attack::Attack;
use super::forgery::Forgery;
use apus_testbed::error::{Doing, Error};
use apus_testbed::process::{Control, Stop};

/// What an attacker receives from the lab.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct AttackerSide {
    pub(super) attack: Attack,
    pub(super) server: SocketAddr,
    /// The address of the honest client.
    pub(super) client: SocketAddr,
    pub(super) sealed: bool,
    pub(super) seed: u64,
}

/// What an attacker has done.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Attacked {
    /// Packets that it has sent.
    pub(super) packets: u64,
    /// For how long, in nanoseconds.
    pub(super) nanos: u64,
}

/// Packets between two checks whether the attacker has to stop.
const BATCH: usize = 64;

/// Claims at a time, and their bytes: the longest message of the default configuration.
const CLAIMS: usize = 4;
const CLAIM: u32 = 64_000_000;

/// Longest time that an attacker which claims waits for a packet.
const WAIT: Duration = Duration::from_millis(5);

impl AttackerSide {
    /// Attacks until it has to stop.
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

/// Sends an IP packet. Returns `false` if the system has no room for it now.
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

/// A client that proves its address, as every client does, and begins a request whose rest never comes.
struct Claimant {
    socket: UdpSocket,
    server: SocketAddrV4,
    /// What its packets say: nothing, before the server has offered a session.
    fields: UdpFields,
}

/// What a claimant says about itself, and the id of its request.
const INCARNATION: u32 = 7;
const ID: u64 = 2;

/// Makes claims and keeps them. Returns the number of packets.
fn claim(server: SocketAddrV4, stop: &Stop) -> Result<u64, Error> {
    let doing = || "claim room at the server".to_owned();
    let claimants = (0..CLAIMS).map(|_| Claimant::new(server)).collect::<Result<Vec<_>, _>>();
    let mut claimants = claimants.doing(doing)?;
    let mut sent = 0;
    while !stop.is_asked() {
        for claimant in &mut claimants {
            sent += claimant.go_on().doing(doing)?;
        }
    }
    Ok(sent)
}

impl Claimant {
    fn new(server: SocketAddrV4) -> std::io::Result<Self> {
        let socket = UdpSocket::bind("127.0.0.2:0")?;
        socket.set_read_timeout(Some(WAIT))?;
        let fields = UdpFields {
            flags: Flags::NONE,
            incarnation: INCARNATION.into(),
            low_water: UdpFields::LOW_WATER_UNKNOWN,
            features: Features::OURS,
        };
        Ok(Self { socket, server, fields })
    }

    /// Repeats its first packet until a session is offered; then answers that it is busy, whatever is asked. Returns the number of
    /// packets that it has sent.
    fn go_on(&mut self) -> std::io::Result<u64> {
        if !self.fields.flags.contains(Flags::SESSION) {
            self.begin()?;
        }
        let mut buffer = [0; 2_048];
        let length = match self.socket.recv(&mut buffer) {
            Ok(length) => length,
            Err(error) if is_nothing(&error) => return Ok(1),
            Err(error) => return Err(error),
        };
        let mut sent = 1;
        for packet in Packet::all(Profile::Udp, &buffer[..length]).flatten() {
            let offered =
                packet.header.udp().filter(|fields| fields.flags.contains(Flags::CONFIRM));
            if let Some(offer) = offered.copied() {
                let flags = Flags::SESSION.with(Flags::CONFIRM);
                let fields = UdpFields { flags, low_water: INCARNATION, ..offer };
                self.fields = UdpFields { incarnation: offer.incarnation, ..fields };
                self.begin()?;
                self.fields.flags = Flags::SESSION;
                self.fields.low_water = UdpFields::LOW_WATER_UNKNOWN;
                sent += 1;
            } else if matches!(packet.body, Body::Resend(_)) {
                self.send(Body::Busy, &[])?;
                sent += 1;
            }
        }
        Ok(sent)
    }

    /// Sends the beginning of its request.
    fn begin(&self) -> std::io::Result<()> {
        const BEGINNING: [u8; 1_000] = [7; 1_000];
        let data = Data {
            message_length: CLAIM,
            incoming: BEGINNING.len() as u32,
            ack: None,
            cutoff_version: 0,
            retransmit: false,
            offset: 0,
            offset_in_sequence: false,
        };
        self.send(Body::Data(data, &BEGINNING), &BEGINNING)
    }

    fn send(&self, body: Body<'_>, payload: &[u8]) -> std::io::Result<()> {
        let port = self.socket.local_addr()?.port();
        let id = SenderId::new(ID, Role::Client);
        let header =
            Header::new(body.kind(), port, self.server.port(), id, Dialect::Udp(self.fields));
        let mut buffer: HeaderBuffer = [0; MAX_HEADER_LEN];
        let length = Packet { header, body }.emit_header(&mut buffer);
        let packet = [&buffer[..length], payload].concat();
        match self.socket.send_to(&packet, self.server) {
            Err(error) if !is_nothing(&error) => Err(error),
            _ => Ok(()),
        }
    }
}

/// Returns whether there is nothing to receive, or no room to send.
fn is_nothing(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionRefused, Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), ConnectionRefused | Interrupted | TimedOut | WouldBlock)
}
