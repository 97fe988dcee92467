//! The attack that claims: requests of maximum length whose rest is never sent.

use std::io;
use std::net::{SocketAddrV4, UdpSocket};
use std::time::Duration;

use apus_wire::{Body, Data, Flags, Packet, Profile, Role, SenderId, UdpFields, WIRE_OVERHEAD};

use super::kept::{Sent, is_temporary};
use super::packet::{in_session, no_session, taking_session, write_header};
use apus_testbed::error::{Doing, Error};
use apus_testbed::process::Stop;

/// Number of simultaneous claims, and their bytes: the longest message of the default
/// configuration.
const CLAIMS: usize = 4;
const CLAIM: u32 = 64_000_000;

/// The part of each request that is sent.
const BEGINNING: [u8; 1_000] = [7; 1_000];

/// Longest wait for a packet of one claim before the next claim is served.
const WAIT: Duration = Duration::from_millis(5);

/// A client that proves its address, as every client does, and starts a request whose rest it never
/// sends.
struct Claimant {
    socket: UdpSocket,
    server: SocketAddrV4,
    /// Header fields; without a session until the server has offered one.
    fields: UdpFields,
    sent: Sent,
}

/// Incarnation of a claimant, and the id of its request.
const INCARNATION: u32 = 7;
const ID: u64 = 2;

/// Makes claims and keeps them until `stop`.
pub(super) fn claim(server: SocketAddrV4, stop: &Stop) -> Result<Sent, Error> {
    let doing = || "claim room at the server".to_owned();
    let claimants = (0..CLAIMS).map(|_| Claimant::new(server)).collect::<Result<Vec<_>, _>>();
    let mut claimants = claimants.doing(doing)?;
    while !stop.is_asked() {
        for claimant in &mut claimants {
            claimant.step().doing(doing)?;
        }
    }
    let mut sent = Sent::default();
    claimants.iter().for_each(|claimant| sent.add(claimant.sent));
    Ok(sent)
}

impl Claimant {
    fn new(server: SocketAddrV4) -> io::Result<Self> {
        let socket = UdpSocket::bind("127.0.0.2:0")?;
        socket.set_read_timeout(Some(WAIT))?;
        let fields = no_session(INCARNATION.into());
        Ok(Self { socket, server, fields, sent: Sent::default() })
    }

    /// Repeats the first packet until a session is offered; afterwards answers every RESEND with
    /// BUSY.
    fn step(&mut self) -> io::Result<()> {
        if !self.fields.flags.contains(Flags::SESSION) {
            self.start()?;
        }
        let mut buffer = [0; 2_048];
        let length = match self.socket.recv(&mut buffer) {
            Ok(length) => length,
            Err(error) if is_temporary(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        for packet in Packet::all(Profile::Udp, &buffer[..length]).flatten() {
            if let Some(fields) = taking_session(&packet, INCARNATION) {
                self.fields = fields;
                self.start()?;
                self.fields = in_session(fields);
            } else if matches!(packet.body, Body::Resend(_)) {
                self.send(Body::Busy, &[])?;
            }
        }
        Ok(())
    }

    /// Sends the first part of the request.
    fn start(&mut self) -> io::Result<()> {
        let data = Data::first(CLAIM, BEGINNING.len() as u32);
        self.send(Body::Data(data, &BEGINNING), &BEGINNING)
    }

    fn send(&mut self, body: Body<'_>, payload: &[u8]) -> io::Result<()> {
        let ports = (self.socket.local_addr()?.port(), self.server.port());
        let mut packet = Vec::new();
        write_header(&mut packet, ports, SenderId::new(ID, Role::Client), self.fields, body);
        packet.extend_from_slice(payload);
        match self.socket.send_to(&packet, self.server) {
            Ok(length) => {
                self.sent.add(Sent { packets: 1, bytes: length as u64 + WIRE_OVERHEAD });
                Ok(())
            }
            Err(error) if is_temporary(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
