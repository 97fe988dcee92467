//! The core in place of a recorded host, verified by the model of the module.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use apus_proto::{Config, Datagram, Event, Instant, Profile, Transport};
use apus_sim::kernel::{Module, UNSCHEDULED};
use apus_wire::{
    Body, Cutoffs, Data, Dialect, Header, KernelFields, MAX_HEADER_LEN, Packet, Role, SenderId,
};

use crate::recording::{Piece, Recorded};

/// Offset of the recordings from the core's time.
const BEGIN: u64 = 1_000_000_000;
/// Bytes of a packet without IP header, at an MTU of 1500.
const PACKET: usize = 1_480;
/// Payload bytes of such a packet.
pub(crate) const SEGMENT: u32 = 1_424;

/// The core.
pub(crate) struct Core {
    pub(crate) transport: Transport,
    port: u16,
    other: IpAddr,
    /// Whether it has yet to receive the other host's cutoffs, which the recorded host had from the
    /// start.
    to_be_told: bool,
}

/// A packet of the core.
pub(crate) struct Said {
    pub(crate) at: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Said {
    pub(crate) fn packet(&self) -> Packet<'_> {
        Packet::parse(Profile::Kernel, &self.bytes).expect("the core writes packets")
    }
}

impl Core {
    /// Returns a core at this port that communicates with host `other`; with `told`, [`Core::tell`]
    /// must give it that host's cutoffs first.
    pub(crate) fn new(port: u16, other: IpAddr, told: bool) -> Self {
        let unscheduled = u64::from(UNSCHEDULED);
        let config = Config::builder()
            .profile(Profile::Kernel)
            .unsched_bytes_min(unscheduled)
            .unsched_bytes_max(unscheduled)
            .build()
            .unwrap();
        let transport = Transport::new(config, port, port.into());
        Self { transport, port, other, to_be_told: told }
    }

    pub(crate) fn now(at: u64) -> Instant {
        Instant::from_nanos(BEGIN + at)
    }

    /// Returns the source address of the packets that the core receives.
    pub(crate) fn source(&self) -> SocketAddr {
        SocketAddr::new(self.other, 0)
    }

    pub(crate) fn receive(&mut self, at: u64, bytes: &[u8]) {
        let from = self.source();
        self.transport.handle_datagram(Self::now(at), Datagram::new(from, bytes));
        self.tell(at);
    }

    /// Sends the other host's cutoffs to the core, if it lacks them.
    pub(crate) fn tell(&mut self, at: u64) {
        if std::mem::take(&mut self.to_be_told) {
            let unscheduled = [0, 0, 0, 0, 1_000_000, 15_000, 2_800, 200];
            let body = Body::Cutoffs(Cutoffs { unscheduled, version: 1 });
            let dialect = Dialect::Kernel(KernelFields::OURS);
            let id = SenderId::new(2, Role::Client);
            let header = Header::new(body.kind(), 1, self.port, id, dialect);
            let mut buffer = [0; MAX_HEADER_LEN];
            let len = Packet { header, body }.emit_header(&mut buffer);
            self.transport
                .handle_datagram(Self::now(at), Datagram::new(self.source(), &buffer[..len]));
        }
    }

    /// Advances the time to `until`, and collects the packets that timers cause.
    pub(crate) fn pass(&mut self, until: u64, events: &mut Vec<Event>) -> Vec<Said> {
        let mut said = Vec::new();
        while let Some((due, _)) = self.transport.next_timeout()
            && due.as_nanos() <= BEGIN + until
        {
            let at = due.as_nanos().saturating_sub(BEGIN);
            self.transport.handle_timeout(Self::now(at));
            said.extend(self.drain(at, events));
        }
        said
    }

    /// Collects the core's packets, and its events for the application.
    pub(crate) fn drain(&mut self, at: u64, events: &mut Vec<Event>) -> Vec<Said> {
        let mut said = Vec::new();
        loop {
            while let Some(event) = self.transport.poll_event() {
                match event {
                    Event::NewPeer(peer) => self.transport.set_packet_limit(peer, PACKET),
                    event => events.push(event),
                }
            }
            let Some(transmit) = self.transport.poll_transmit(Self::now(at)) else { return said };
            let payload = transmit.payload().collect::<Vec<_>>().concat();
            let mut pieces = payload.chunks(transmit.segment().max(1));
            for header in transmit.headers().chunks(transmit.header_len()) {
                let bytes = [header, pieces.next().unwrap_or(&[])].concat();
                said.push(Said { at, bytes });
            }
        }
    }
}

/// Verifies a packet of the core; `granted` is the offset that the recorded module had granted,
/// which the model cannot derive.
pub(crate) fn verify(model: &mut Module, from: IpAddr, said: &Said, granted: u32) {
    use apus_sim::kernel::Objection;
    let Err(objection) = model.handle_packet(said.at, from, &said.bytes) else { return };
    let packet = said.packet();
    let excused = match &packet.body {
        Body::Data(data, _) => objection == Objection::NotGranted && data.offset < granted,
        _ => false,
    };
    assert!(!objection.is_fault() || excused, "{objection:?}: {packet:?}");
}

/// Formats the parts of a packet that the protocol determines: all except the unfinished checksum,
/// the place of the offset, and an ack, which any DATA packet may carry.
pub(crate) fn fixed(bytes: &[u8]) -> String {
    let mut packet = Packet::parse(Profile::Kernel, bytes).unwrap();
    if let Dialect::Kernel(fields) = &mut packet.header.dialect {
        fields.checksum = 0;
    }
    if let Body::Data(data, _) = &mut packet.body {
        data.offset_in_sequence = false;
        data.ack = None;
        if data.retransmit {
            // The module repeats the end of the requested range (HM `homa_outgoing.c`
            // `homa_resend_data`), the core the end that it has announced, if that is larger: both
            // are correct, which the model verifies (Rules for peers, item 6).
            data.incoming = 0;
        }
    }
    format!("{packet:?}")
}

/// Checks that the core sent the first transmissions of the recording unchanged. It may omit only
/// those that were `granted` later.
pub(crate) fn compare_first(
    recorded: &Recorded,
    data: &Data,
    piece: Piece,
    said: &BTreeMap<Piece, String>,
    granted: Option<&u32>,
) {
    let granted = granted.copied().unwrap_or(0);
    match said.get(&piece) {
        Some(ours) => assert_eq!(*ours, fixed(recorded.bytes.as_ref().unwrap()), "{piece:?}"),
        None => assert!(data.offset >= granted.max(data.incoming), "{piece:?} is missing"),
    }
}
