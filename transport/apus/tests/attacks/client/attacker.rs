//! A client that proves its address, as every client does, and then does not behave like one.

use crate::packets::{Control, Envelope, accepting, first_contact, in_session};
use crate::v4;
use apus_wire::{Body, Packet, Profile, Role, UdpFields};
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};

/// Ids of its requests: one for each socket is enough.
const ID: u64 = 2;
/// Its claim about itself.
const CLAIM: u32 = 7;

/// A socket whose request the server has accepted.
pub(super) struct Attacker {
    socket: UdpSocket,
    request: Envelope,
}

impl Attacker {
    /// Starts a request of `length` bytes, and sends `beginning` of it.
    pub(super) fn begin(
        from: SocketAddr,
        to: SocketAddrV4,
        length: usize,
        beginning: &[u8],
    ) -> Self {
        let socket = UdpSocket::bind(from).unwrap();
        let from = v4(socket.local_addr().unwrap());
        let fields = first_contact(CLAIM.into());
        let mut request = Envelope { from, to, sender: Role::Client, id: ID, fields };
        socket.send_to(&request.first_of(length, beginning), to).unwrap();
        let offer = receive(&socket).0;
        request.fields = accepting(offer.incarnation, CLAIM);
        socket.send_to(&request.first_of(length, beginning), to).unwrap();
        request.fields = in_session(offer.incarnation);
        socket.set_nonblocking(true).unwrap();
        Self { socket, request }
    }

    /// Answers all RESENDs: there will be more.
    pub(super) fn stay_alive(&self) {
        let mut buffer = [0; 2048];
        while let Ok(length) = self.socket.recv(&mut buffer) {
            let mut packets = Packet::all(Profile::Udp, &buffer[..length]).flatten();
            if packets.any(|packet| matches!(packet.body, Body::Resend(_))) {
                self.socket.send_to(&self.request.write(&Control::BUSY), self.request.to).unwrap();
            }
        }
    }
}

/// Claim and id of the next packet.
pub(super) fn receive(socket: &UdpSocket) -> (UdpFields, u64) {
    let mut buffer = [0; 2048];
    let length = socket.recv(&mut buffer).unwrap();
    let header = Packet::parse(Profile::Udp, &buffer[..length]).unwrap().header;
    (*header.udp().unwrap(), header.sender_id.client_id())
}
