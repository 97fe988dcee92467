//! Data that one end of a handshake has sent and received: both levels, their keys, and their
//! packets.

use super::cookie::COOKIE_LEN;
use super::stream::{IncomingStream, OutgoingStream};
use crate::cipher::{KeyPair, KeySchedule, TAG_LEN};
use crate::failure::Failure;
use crate::negotiation::{KeyChange, Negotiation};
use crate::number::PacketNumbers;
use apus_wire::{HEADER_LEN, SealKind, SealedHeader};

/// Length of a client's padded HELLO (SEAL-9): fits the smallest IPv6 path (1,232 bytes), and
/// allows a reply of three times its length, enough for a server's usual flight.
pub(super) const PADDED: usize = 1_200;

/// Bytes between the header of a HELLO and its cookie: a flag, and the length of the piece.
const HELLO_FIXED: usize = 3;

/// The keys of a complete handshake.
pub(super) type ApplicationKeys = (KeyPair, Box<dyn KeySchedule>);

/// A parsed HELLO.
#[derive(Debug)]
pub(super) struct Hello<'a> {
    pub(super) cookie: Option<&'a [u8]>,
    pub(super) offset: usize,
    pub(super) piece: &'a [u8],
}

impl<'a> Hello<'a> {
    /// Parses the HELLO in `packet`; `None` if it is malformed.
    pub(super) fn parse(packet: &'a [u8]) -> Option<Self> {
        let offset = SealedHeader::parse(packet)?.sequence as usize;
        let body = packet.get(HEADER_LEN..)?;
        let (fixed, rest) = body.split_at_checked(HELLO_FIXED)?;
        let len = usize::from(u16::from_be_bytes([fixed[1], fixed[2]]));
        let (cookie, rest) = match fixed[0] {
            0 => (None, rest),
            1 => {
                let (cookie, rest) = rest.split_at_checked(COOKIE_LEN)?;
                (Some(cookie), rest)
            }
            _ => return None,
        };
        Some(Self { cookie, offset, piece: rest.get(..len)? })
    }

    fn emit(&self, ports: (u16, u16), id: u64, padded: usize) -> Vec<u8> {
        let mut packet = vec![0; HEADER_LEN];
        SealedHeader::emit(SealKind::Hello, ports, self.offset as u32, id, &mut packet);
        packet.push(u8::from(self.cookie.is_some()));
        packet.extend((self.piece.len() as u16).to_be_bytes());
        packet.extend(self.cookie.unwrap_or_default());
        packet.extend(self.piece);
        packet.resize(packet.len().max(padded), 0);
        packet
    }
}

/// One end of a handshake.
#[derive(Debug)]
pub(super) struct Flight {
    /// Drawn by the client; identifies the handshake in all its packets.
    pub(super) id: u64,
    /// The local port and the peer's, for headers.
    ports: (u16, u16),
    pub(super) negotiation: Box<dyn Negotiation>,
    initial: (IncomingStream, OutgoingStream),
    sealed: (IncomingStream, OutgoingStream),
    keys: Option<KeyPair>,
    numbers: PacketNumbers,
    application: Option<ApplicationKeys>,
    /// Tickets that the server sends in READY.
    pub(super) tickets: Vec<u8>,
}

impl Flight {
    pub(super) fn new(id: u64, ports: (u16, u16), negotiation: Box<dyn Negotiation>) -> Self {
        Self {
            id,
            ports,
            negotiation,
            initial: (IncomingStream::default(), OutgoingStream::default()),
            sealed: (IncomingStream::default(), OutgoingStream::default()),
            keys: None,
            numbers: PacketNumbers::new(),
            application: None,
            tickets: Vec::new(),
        }
    }

    /// Collects the output of the negotiation.
    pub(super) fn write(&mut self) {
        loop {
            let mut bytes = Vec::new();
            let change = self.negotiation.write(&mut bytes);
            if bytes.is_empty() && change.is_none() {
                return;
            }
            if self.application.is_some() && self.negotiation.is_complete() {
                self.tickets.extend(bytes);
            } else if self.keys.is_some() {
                self.sealed.1.append(&bytes);
            } else {
                self.initial.1.append(&bytes);
            }
            match change {
                Some(KeyChange::Handshake(keys)) => self.keys = Some(keys),
                Some(KeyChange::Application(keys, schedule)) => {
                    self.application = Some((keys, schedule));
                }
                None => {}
            }
        }
    }

    /// Reads a HELLO of the peer. Returns whether it contained new bytes.
    ///
    /// # Errors
    ///
    /// The handshake has failed.
    pub(super) fn handle_hello(&mut self, hello: &Hello<'_>) -> Result<bool, Failure> {
        let ready = self.initial.0.take(hello.offset, hello.piece);
        self.read(&ready)
    }

    /// Opens a FINISH of the peer in place and reads it. Returns whether it contained new bytes.
    ///
    /// # Errors
    ///
    /// The handshake failed. A forged packet is no error.
    pub(super) fn handle_finish(&mut self, packet: &mut [u8]) -> Result<bool, Failure> {
        let (Some(header), Some(keys)) = (SealedHeader::parse(packet), &self.keys) else {
            return Ok(false);
        };
        let (head, body) = packet.split_at_mut(HEADER_LEN);
        let Some(len) = keys.remote.open(header.number, head, body) else { return Ok(false) };
        let ready = self.sealed.0.take(header.sequence as usize, &body[..len]);
        self.read(&ready)
    }

    fn read(&mut self, ready: &[u8]) -> Result<bool, Failure> {
        if ready.is_empty() {
            return Ok(false);
        }
        self.negotiation.read(ready)?;
        self.write();
        Ok(true)
    }

    /// Returns the packets of the first level, each with the cookie and padded to `padded` bytes.
    pub(super) fn hellos(&self, padded: usize, cookie: Option<&[u8]>) -> Vec<Vec<u8>> {
        let pieces = self.initial.1.pieces();
        let packet = |(offset, piece)| Hello { cookie, offset, piece };
        pieces.map(|piece| packet(piece).emit(self.ports, self.id, padded)).collect()
    }

    /// Returns the packets of the second level, sealed with unused numbers.
    pub(super) fn finishes(&mut self) -> Vec<Vec<u8>> {
        let Some(keys) = &self.keys else { return Vec::new() };
        let mut packets = Vec::new();
        for (offset, piece) in self.sealed.1.pieces() {
            let mut packet = vec![0; HEADER_LEN];
            SealedHeader::emit(SealKind::Finish, self.ports, offset as u32, self.id, &mut packet);
            packet.extend(piece);
            let (head, body) = packet.split_at_mut(HEADER_LEN);
            let Some(number) = self.numbers.take() else { break };
            SealedHeader::seal(head, number, false);
            let Some(tag) = keys.local.seal(number, head, body) else { break };
            debug_assert_eq!(tag.len(), TAG_LEN);
            packet.extend(tag);
            packets.push(packet);
        }
        packets
    }

    /// Returns whether the second level has packets to send.
    pub(super) const fn has_finish(&self) -> bool {
        !self.sealed.1.is_empty()
    }

    /// Returns the packet that reports the cause of the failure to the peer.
    pub(super) fn failed(&self, cause: Failure) -> Vec<u8> {
        failed(self.ports, self.id, cause)
    }

    /// Takes the keys of a complete handshake; `None` if it is not complete.
    pub(super) fn take_application(&mut self) -> Option<ApplicationKeys> {
        if self.negotiation.is_complete() { self.application.take() } else { None }
    }
}

/// Returns a FAILED packet about handshake `id`.
pub(super) fn failed(ports: (u16, u16), id: u64, cause: Failure) -> Vec<u8> {
    let mut packet = vec![0; HEADER_LEN];
    SealedHeader::emit(SealKind::Failed, ports, u32::from(cause.code()), id, &mut packet);
    packet
}

/// Returns a RETRY packet for handshake `id`.
pub(super) fn retry(ports: (u16, u16), id: u64, cookie: &[u8; COOKIE_LEN]) -> Vec<u8> {
    let mut packet = vec![0; HEADER_LEN];
    SealedHeader::emit(SealKind::Retry, ports, 0, id, &mut packet);
    packet.extend(cookie);
    packet
}
