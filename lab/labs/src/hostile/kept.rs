//! Attacks that keep messages alive without progress: requests that are begun and never sent, and
//! responses of a hostile server.
//!
//! Each message is one packet with one byte. Then come signs of life, in turn BUSY and single bytes;
//! every RESEND is answered by BUSY. After some of them a client begins another request.

use std::io;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

use apus_wire::{
    Body, Data, Features, Flags, Packet, Profile, Role, SenderId, UdpFields, WIRE_OVERHEAD,
};

use super::packet::{in_session, no_session, taking_session, write_header};
use apus_testbed::error::{Doing, Error};
use apus_testbed::process::Stop;

/// The host of the attacker.
const HOST: &str = "127.0.0.2:0";

/// Bytes of a message: fewer than the honest ones that need GRANTs have, so that it precedes them.
const LENGTH: u32 = 900_000;

/// Ports that hold grants.
const PORTS: usize = 16;

/// Time between two signs of life of a message, and their number until another one is begun.
const SIGN: Duration = Duration::from_millis(1);
const SIGNS: u32 = 25;

/// Pause between two reads of the sockets.
const PAUSE: Duration = Duration::from_micros(200);

/// Session of the hostile server, and incarnation of the clients: any number.
const SESSION: u64 = 0x00ab_cdef_0123;
const INCARNATION: u32 = 7;

/// Packets and bytes on the wire that were sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

impl Sent {
    /// Adds what another one has sent.
    pub(super) const fn add(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

/// The announcement of a message: its bytes without a GRANT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Announcement {
    /// All but one.
    Invented,
    /// One: the others need GRANTs.
    Honest,
}

/// Begins requests at `server` and keeps them alive until `stop`: one with an invented announcement,
/// or several that hold grants.
pub(super) fn keep_requests(
    server: SocketAddrV4,
    announcement: Announcement,
    stop: &Stop,
) -> Result<Sent, Error> {
    let doing = || "keep requests alive at the server".to_owned();
    let ports = if announcement == Announcement::Invented { 1 } else { PORTS };
    let client = || Endpoint::open(server, announcement);
    let mut clients = (0..ports).map(|_| client()).collect::<io::Result<Vec<_>>>().doing(doing)?;
    while !stop.is_asked() {
        for client in &mut clients {
            client.step_as_client().doing(doing)?;
        }
        std::thread::sleep(PAUSE);
    }
    let mut sent = Sent::default();
    clients.iter().for_each(|client| sent.add(client.sent));
    Ok(sent)
}

/// A server that begins a response to each request, and keeps them alive. It answers requests of one
/// byte in full: a client that connects waits for the reply to such a request.
pub(super) struct HostileServer {
    socket: UdpSocket,
    responses: Vec<Endpoint>,
}

impl HostileServer {
    pub(super) fn open() -> Result<Self, Error> {
        let socket = nonblocking().doing(|| "open a hostile server".to_owned())?;
        Ok(Self { socket, responses: Vec::new() })
    }

    pub(super) fn address(&self) -> Result<SocketAddr, Error> {
        self.socket.local_addr().doing(|| "read the address of a socket".to_owned())
    }

    /// Serves until `stop`.
    pub(super) fn serve(mut self, stop: &Stop) -> Result<Sent, Error> {
        let doing = || "answer an honest client".to_owned();
        while !stop.is_asked() {
            self.step().doing(doing)?;
            std::thread::sleep(PAUSE);
        }
        let mut sent = Sent::default();
        self.responses.iter().for_each(|response| sent.add(response.sent));
        Ok(sent)
    }

    fn step(&mut self) -> io::Result<()> {
        let mut buffer = [0; 2_048];
        while let Some((length, from)) = receive(&self.socket, &mut buffer)? {
            let SocketAddr::V4(from) = from else { continue };
            for packet in Packet::all(Profile::Udp, &buffer[..length]).flatten() {
                let (id, Some(fields)) = (packet.header.sender_id, packet.header.udp()) else {
                    continue;
                };
                let known = self.responses.iter_mut().find(|known| known.id == id.client_id());
                let response = match (known, &packet.body) {
                    (Some(known), _) => known,
                    (None, Body::Data(request, _)) if id.sender() == Role::Client => {
                        let message = match (request.message_length, self.responses.len() % 2) {
                            (1, _) => (1, Announcement::Honest),
                            (_, 0) => (LENGTH, Announcement::Invented),
                            _ => (LENGTH, Announcement::Honest),
                        };
                        let socket = self.socket.try_clone()?;
                        let new = Endpoint::answering(socket, from, id.client_id(), message);
                        self.responses.push(new);
                        self.responses.last_mut().expect("pushed above")
                    }
                    (None, _) => continue,
                };
                response.handle_as_server(&packet, fields)?;
            }
        }
        self.responses.iter_mut().try_for_each(Endpoint::give_sign)
    }
}

/// One end of a call, with one message. It is never completed, unless it has a single byte.
struct Endpoint {
    socket: UdpSocket,
    peer: SocketAddrV4,
    role: Role,
    /// The even id of the call.
    id: u64,
    /// Header fields; without a session until the server has offered one.
    fields: UdpFields,
    /// Bytes of the message.
    length: u32,
    announcement: Announcement,
    /// Bytes sent of the message; 0 before its first packet.
    offset: u32,
    next_sign: Instant,
    signs: u32,
    sent: Sent,
}

impl Endpoint {
    fn open(server: SocketAddrV4, announcement: Announcement) -> io::Result<Self> {
        let fields = no_session(INCARNATION.into());
        Ok(Self::new(nonblocking()?, server, (Role::Client, 2), fields, (LENGTH, announcement)))
    }

    fn answering(
        socket: UdpSocket,
        client: SocketAddrV4,
        id: u64,
        message: (u32, Announcement),
    ) -> Self {
        let session = UdpFields {
            flags: Flags::SESSION,
            incarnation: SESSION,
            low_water: UdpFields::LOW_WATER_UNKNOWN,
            features: Features::OURS,
        };
        Self::new(socket, client, (Role::Server, id), session, message)
    }

    fn new(
        socket: UdpSocket,
        peer: SocketAddrV4,
        (role, id): (Role, u64),
        fields: UdpFields,
        (length, announcement): (u32, Announcement),
    ) -> Self {
        Self {
            socket,
            peer,
            role,
            id,
            fields,
            length,
            announcement,
            offset: 0,
            next_sign: Instant::now(),
            signs: 0,
            sent: Sent::default(),
        }
    }

    /// Repeats the first packet until a session is offered; begins the request in it, and keeps it
    /// alive.
    fn step_as_client(&mut self) -> io::Result<()> {
        let mut buffer = [0; 2_048];
        while let Some((length, _)) = receive(&self.socket, &mut buffer)? {
            for packet in Packet::all(Profile::Udp, &buffer[..length]).flatten() {
                if let Some(fields) = taking_session(&packet, INCARNATION) {
                    self.fields = fields;
                    self.begin()?;
                    self.fields = in_session(fields);
                } else if matches!(packet.body, Body::Resend(_)) {
                    self.send(Body::Busy, &[])?;
                }
            }
        }
        if self.signs >= SIGNS {
            self.id += 2;
            self.begin()?;
        }
        if self.fields.flags.contains(Flags::SESSION) {
            return self.give_sign();
        }
        if self.is_due() {
            self.begin()?;
        }
        Ok(())
    }

    /// Handles a packet of the client: offers a session, begins the response, answers RESENDs.
    fn handle_as_server(&mut self, packet: &Packet<'_>, fields: &UdpFields) -> io::Result<()> {
        match packet.body {
            Body::Data(..) if !fields.flags.contains(Flags::SESSION) => {
                let session = self.fields;
                self.fields.flags = Flags::SESSION.with(Flags::CONFIRM);
                self.fields.low_water = UdpFields::claim(fields.incarnation);
                self.send(Body::NeedAck, &[])?;
                self.fields = session;
                Ok(())
            }
            Body::Data(..) if self.offset == 0 => self.begin(),
            Body::Resend(_) if self.is_complete() => self.begin(),
            Body::Resend(_) => self.send(Body::Busy, &[]),
            _ => Ok(()),
        }
    }

    /// Sends the first packet of the message.
    fn begin(&mut self) -> io::Result<()> {
        (self.offset, self.signs) = (0, 0);
        self.continue_by_a_byte()
    }

    fn continue_by_a_byte(&mut self) -> io::Result<()> {
        let announced = match self.announcement {
            Announcement::Invented => self.length - 1,
            Announcement::Honest => 1,
        };
        let data = Data { offset: self.offset, ..Data::first(self.length, announced) };
        self.offset += 1;
        self.send(Body::Data(data, &[7]), &[7])
    }

    fn give_sign(&mut self) -> io::Result<()> {
        if self.offset == 0 || self.is_complete() || !self.is_due() {
            return Ok(());
        }
        self.signs += 1;
        if self.signs.is_multiple_of(2) {
            self.continue_by_a_byte()
        } else {
            self.send(Body::Busy, &[])
        }
    }

    /// Returns whether all bytes of the message were sent.
    const fn is_complete(&self) -> bool {
        self.offset == self.length
    }

    /// Returns whether the next sign is due, and sets the time of the one after it.
    fn is_due(&mut self) -> bool {
        let is_due = Instant::now() >= self.next_sign;
        if is_due {
            self.next_sign = Instant::now() + SIGN;
        }
        is_due
    }

    fn send(&mut self, body: Body<'_>, payload: &[u8]) -> io::Result<()> {
        let ports = (self.socket.local_addr()?.port(), self.peer.port());
        let mut packet = Vec::new();
        write_header(&mut packet, ports, SenderId::new(self.id, self.role), self.fields, body);
        packet.extend_from_slice(payload);
        match self.socket.send_to(&packet, self.peer) {
            Ok(length) => {
                self.sent.add(Sent { packets: 1, bytes: length as u64 + WIRE_OVERHEAD });
                Ok(())
            }
            Err(error) if is_temporary(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Opens a socket of the attacker.
fn nonblocking() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(HOST)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Returns the length and the source of a datagram, if one has arrived.
fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
    match socket.recv_from(buffer) {
        Ok(received) => Ok(Some(received)),
        Err(error) if is_temporary(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns whether there is no packet to receive, or no room to send.
pub(super) fn is_temporary(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), ConnectionRefused | Interrupted | TimedOut | WouldBlock)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The packets of a client, as its server receives them.
    fn packets(server: &UdpSocket) -> Vec<(u64, Vec<u8>)> {
        let mut all = Vec::new();
        let mut buffer = [0; 2_048];
        while let Ok(length) = server.recv(&mut buffer) {
            let packet = Packet::parse(Profile::Udp, &buffer[..length]).unwrap();
            all.push((packet.header.sender_id.client_id(), buffer[..length].to_vec()));
        }
        all
    }

    #[test]
    fn a_message_begins_with_one_byte_and_stays_alive() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        server.set_nonblocking(true).unwrap();
        let SocketAddr::V4(address) = server.local_addr().unwrap() else { unreachable!() };
        let mut client = Endpoint::open(address, Announcement::Invented).unwrap();
        client.fields.flags = Flags::SESSION;
        client.begin().unwrap();
        for _ in 0..2 {
            client.next_sign = Instant::now();
            client.give_sign().unwrap();
        }
        let sent = packets(&server);
        let bodies = sent.iter().map(|(_, bytes)| Packet::parse(Profile::Udp, bytes).unwrap().body);
        let bodies: Vec<_> = bodies.collect();
        assert!(
            matches!(
                bodies[..],
                [
                    Body::Data(Data { offset: 0, incoming: 899_999, .. }, [7]),
                    Body::Busy,
                    Body::Data(Data { offset: 1, .. }, [7]),
                ]
            ),
            "{bodies:?}"
        );
        assert_eq!(client.sent.packets, 3);
    }

    #[test]
    fn a_hostile_server_answers_only_requests_of_one_byte() {
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.set_nonblocking(true).unwrap();
        let port = client.local_addr().unwrap().port();
        let mut server = HostileServer::open().unwrap();
        let to = server.address().unwrap();
        let fields = UdpFields { flags: Flags::SESSION, ..no_session(SESSION) };
        let mut packet = Vec::new();
        for (id, length) in [(2, 1), (4, 100)] {
            let request = Body::Data(Data::first(length, length), &[7]);
            let id = SenderId::new(id, Role::Client);
            write_header(&mut packet, (port, to.port()), id, fields, request);
            packet.resize(packet.len() + length as usize, 7);
            client.send_to(&packet, to).unwrap();
            server.step().unwrap();
        }
        server.responses.iter_mut().for_each(|response| response.next_sign = Instant::now());
        server.step().unwrap();
        let complete: Vec<_> = server.responses.iter().map(Endpoint::is_complete).collect();
        assert_eq!(complete, [true, false]);
        let answered = |id| packets(&client).iter().filter(|(other, _)| *other == id).count();
        assert_eq!(answered(2), 1, "the reply, without signs of life");
    }
}
