//! Housekeeping: reports of the engine about the system and the application.

use super::Transport;
use crate::error::FailureKind;
use crate::expiry::{ask, interval, note_closed, note_returned};
use crate::lifecycle::{Ending, end_server, fail_and_disown, refuse_live};
use crate::neighbours::{ArrivingLengths, Neighbours, Published};
use crate::peer::{Address, Birth, Peer, peer_address};
use crate::rpc::{RpcKey, ServerState, SideState};
use crate::rx::establish_session;
use crate::time::{Instant, nanos};
use apus_wire::{Body, Header, Kind, Packet, Profile, Refusal, Role, SenderId, UdpFields};
use std::time::Duration;

/// A report of the system, or of an ICMP packet, about a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unreachable {
    /// The port is closed.
    PortClosed,
    /// The host does not run the protocol.
    Protocol,
    /// No route to the host exists.
    Host,
    /// The system does not permit sending to it.
    NotPermitted,
    /// Key agreement with it failed.
    Untrusted,
}

impl Unreachable {
    const fn reason(self) -> FailureKind {
        match self {
            Self::PortClosed => FailureKind::PortClosed,
            Self::Protocol => FailureKind::ProtocolUnreachable,
            Self::Host => FailureKind::HostUnreachable,
            Self::NotPermitted => FailureKind::NotPermitted,
            Self::Untrusted => FailureKind::Untrusted,
        }
    }
}

/// The life of a peer, as it has stated it in a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatedLife {
    /// Its age.
    pub age: Duration,
    /// Time since the statement, at most.
    pub stated_within: Duration,
    /// Whether the peer's earlier session certainly belonged to another life.
    pub is_other: bool,
}

impl StatedLife {
    fn birth(self, now: Instant) -> Birth {
        let asked = now.as_nanos().saturating_sub(nanos(self.stated_within));
        // Another life need not be distinguished by time.
        let asked = if self.is_other { now } else { Instant::from_nanos(asked) };
        Birth::of_age(nanos(self.age), asked, now)
    }
}

impl Transport {
    /// Sets the length of the longest packet (header and payload) that reaches `peer` in one piece.
    /// Lengths below that of IPv6's minimum MTU are raised to it; an unknown peer is ignored.
    pub fn set_packet_limit(&mut self, peer: Address, bytes: usize) {
        let peer = peer_address(self.output.outbound.identity.profile, peer);
        if let Some(peer) = self.protocol.tables.peers.find(&peer) {
            self.protocol.tables.peers[peer].size.report(bytes);
        }
    }

    /// Sets when this endpoint's life began: every packet that it receives was sent to its address
    /// after that, or waited for it. Clients learn from it that a restarted server has not executed
    /// their requests (AMO-11). By default that is not stated.
    ///
    /// For an engine that has just opened its socket: no earlier life receives at the address.
    pub const fn set_birth(&mut self, now: Instant) {
        self.output.outbound.identity.born = Some(now);
    }

    /// Sets the session of `peer` with this endpoint, and of this endpoint with it: 48 bits shared
    /// only by both ends, after a handshake that has shown that the peer is at its address and
    /// alive (SEAL-11). It replaces the session challenge (AMO-1): calls that wait for a session
    /// start in it, and RPCs of another session end as if the peer had been restarted (AMO-3,
    /// AMO-4). If the peer has stated its `life`, calls that it cannot have executed continue
    /// (AMO-11).
    ///
    /// Ignored in the kernel profile, which has no sessions, and if there is no room for the peer:
    /// then its requests are answered by a session challenge.
    pub fn establish_session(
        &mut self,
        now: Instant,
        peer: Address,
        session: u64,
        life: Option<StatedLife>,
    ) {
        self.advance(now);
        let profile = self.output.outbound.identity.profile;
        if profile == Profile::Udp {
            let peer = peer_address(profile, peer);
            let _ = establish_session(
                &mut self.protocol,
                &mut self.inbound,
                &mut self.output,
                peer,
                session,
                life.map(|stated| stated.birth(now)),
            );
        }
    }

    /// Returns the session in which a request was received; `None` if its client has disappeared.
    #[must_use]
    pub fn session_of_request(&self, rpc: RpcKey) -> Option<u64> {
        let entry = self.protocol.tables.rpcs.get(rpc)?;
        entry.server().map(|server| server.session)
    }

    /// Sets the id of the next call; each further id is greater by two. Only for the kernel
    /// profile, whose servers identify a call by the client's host and its id: if several endpoints
    /// run on a host, each needs a separate range that was never used before (Rules for peers, item
    /// 4). By default, the first id is drawn at random.
    ///
    /// # Panics
    ///
    /// If `id` is odd: odd ids are servers'.
    pub const fn set_first_id(&mut self, id: u64) {
        assert!(id.is_multiple_of(2), "clients' ids are even");
        self.next_kernel_id = id;
    }

    /// Sets the rate of the link as reported by the driver, in Mbit/s. A rate in the configuration
    /// has precedence; 0 means unknown (SEND-8).
    pub fn set_link_rate(&mut self, mbps: u32) {
        if self.protocol.config.link_mbps() == 0 && mbps > 0 {
            self.output.outbound.link_mbps = u64::from(mbps);
            self.output.outbound.pacer.set_rate(u64::from(mbps));
            self.inbound.granter.set_link_rate(u64::from(mbps));
            self.protocol
                .timers
                .set_link_rate(&self.protocol.config, self.output.outbound.link_mbps);
        }
    }

    /// Reports that no packet was unread at `at`: packets handled from now on have arrived since. A
    /// RESEND may then have waited since `at`, and carries no information about bytes sent later
    /// (TIME-7).
    ///
    /// For an engine that cannot read everything at once; [`UnreadBounds`](crate::UnreadBounds)
    /// derives both reports from an engine's receives. Without this report and
    /// [`Transport::finish_reading`] each packet counts as handled when it arrives.
    pub fn begin_reading(&mut self, at: Instant) {
        self.protocol.timers.arrears.begin(at);
    }

    /// Reports that all packets that had arrived by `at` have been handled: the silence of peers is
    /// measured up to there, so that unread packets do not count as lost (TIME-3). Peers are asked
    /// for bytes only after further reports, so the engine must report after each poll that leaves
    /// the socket empty, and also while it never is.
    pub fn finish_reading(&mut self, at: Instant) {
        self.protocol.timers.arrears.finish(at);
    }

    /// Reports that the system has dropped packets before `at` for lack of room in the socket.
    /// Missing bytes are requested as soon as all earlier packets have been read, and not only
    /// after the usual silence (TIME-14).
    pub const fn handle_overflow(&mut self, at: Instant) {
        self.protocol.timers.arrears.overflow(at);
    }

    /// Sets the bytes that the system holds for this endpoint until they are read, including its
    /// own structures. Each sender receives its share of a part of it, and keeps its unscheduled
    /// bytes below that (PRIO-12). Unless `max_incoming` is configured, at most half of it is
    /// granted (GRANT-5). By default the size is unknown, and no share is stated.
    pub fn set_receive_buffer(&mut self, bytes: usize) {
        self.inbound.room.set_buffer(bytes as u64);
        self.inbound.granter.set_receive_buffer(bytes as u64);
    }

    /// Reports the state of the host's other transports (GRANT-14, GRANT-17, SEND-12, SEND-14). By
    /// default a transport is alone.
    ///
    /// Takes effect with the next grants and packets: transports that share a link report it in
    /// each pass.
    pub fn observe_neighbours(&mut self, neighbours: &Neighbours<'_>) {
        let sharers = neighbours.sharers.max(1) as u64;
        self.inbound.granter.share(sharers, neighbours.incoming);
        self.inbound.granter.set_active_elsewhere(neighbours.active);
        self.output.outbound.pacer.share(sharers, neighbours.link_idle_at);
    }

    /// Returns this transport's state for the host's other transports, to be passed to their
    /// [`Transport::observe_neighbours`].
    pub fn publish(&mut self) -> Published<'_> {
        Published {
            incoming: self.inbound.granter.published_backlog(),
            active: self.inbound.granter.active_here(),
            link_nanos: self.output.outbound.pacer.take_unpublished(),
        }
    }

    /// Returns the lengths of arriving messages, if it is time to publish them again (PRIO-17):
    /// once in `cutoffs_interval_usecs`, and never if that is 0. The caller publishes them, and
    /// then calls [`Transport::observe_lengths`].
    pub fn poll_lengths(&mut self, now: Instant) -> Option<ArrivingLengths> {
        self.inbound.sampler.poll_lengths(now)
    }

    /// Reports the arrivals at each of the other transports of the host, for the next renewal of
    /// the cutoffs.
    pub fn observe_lengths(&mut self, elsewhere: &[ArrivingLengths]) {
        self.inbound.sampler.observe(elsewhere, self.output.outbound.link_mbps);
    }

    /// Sets whether requests are accepted, which is the default. Otherwise they are refused with
    /// [`Refusal::NotServing`].
    pub const fn set_serving(&mut self, serving: bool) {
        self.inbound.serving = serving;
    }

    /// Sets the number of requests to accept from now on; further ones are refused with
    /// [`Refusal::Overloaded`] until it is set again (CAP-16). The default, [`usize::MAX`], accepts
    /// all.
    ///
    /// For an engine that measures how fast the application is. Accepted requests are not affected.
    pub const fn set_request_room(&mut self, requests: usize) {
        self.share_request_room(requests, 0);
    }

    /// Sets the number of requests to accept from now on, as [`Transport::set_request_room`] does,
    /// out of `bound` that may wait in all. Further ones of a host that has less than its share of
    /// what waits are accepted: hosts share the bound equally.
    pub const fn share_request_room(&mut self, requests: usize, bound: usize) {
        self.inbound.request_room = requests;
        self.inbound.waiting.begin_batch(bound);
    }

    /// Counts a request from `from` that waits for the application. Returns its turn: requests with
    /// lower turns are served first, so that each host has one served before any has two.
    /// [`Transport::request_taken`] ends that.
    pub fn request_waits(&mut self, from: Address) -> u64 {
        self.inbound.waiting.add(&from)
    }

    /// A request that was counted by [`Transport::request_waits`], with this turn, does not wait any
    /// more.
    pub fn request_taken(&mut self, from: Address, turn: u64) {
        self.inbound.waiting.take(&from, turn);
    }

    /// Returns whether a request from `from` that did not arrive over this network may wait beyond
    /// the bound: its host has less than its share.
    pub fn accepts_beyond_bound(&mut self, from: Address) -> bool {
        self.inbound.waiting.accepts(&from)
    }

    /// Returns the payload bytes of messages that the peer may not have yet: requests without a
    /// response, responses without an acknowledgment. An empty message counts as one byte, so that
    /// 0 means that no such message exists.
    #[must_use]
    pub const fn unacknowledged_bytes(&self) -> u64 {
        self.inbound.budget.send.bytes()
    }

    /// Sets the number of leading bytes retained of each message whose first packet arrives from
    /// now on; the rest is counted and discarded (CAP-15). The default, [`usize::MAX`], retains
    /// everything; 0 retains nothing.
    ///
    /// For callers that measure and never read payload, such as a simulator or a sink of load:
    /// memory is then proportional to the number of live messages, and not to their bytes. Events
    /// carry the retained bytes. Everything else is the same: the packets that are sent, the order
    /// of events, and the counters, which count whole lengths.
    ///
    /// [`Transport::payload_consumed`] still takes the length of the event's payload, 0 if nothing
    /// is retained. Discarded bytes count as consumed when their message is complete, so that
    /// discarded bytes of unconsumed messages do not stop its peers (CAP-6).
    pub fn set_payload_prefix(&mut self, bytes: usize) {
        self.inbound.keep = u32::try_from(bytes).unwrap_or(u32::MAX);
    }

    /// Counts a message of `bytes` bytes that did not arrive over this network and waits for the
    /// same application: both share `max_receive_bytes` (CAP-6). [`Transport::payload_consumed`]
    /// releases it.
    pub const fn charge_external_payload(&mut self, bytes: usize) {
        self.inbound.budget.receive.hold(bytes);
    }

    /// Returns whether the bytes that wait for the application have reached `max_receive_bytes`:
    /// receiving elsewhere must pause until some of them are consumed.
    #[must_use]
    pub const fn is_receive_full(&self) -> bool {
        self.inbound.budget.receive.bytes() >= self.protocol.config.max_receive_bytes()
    }

    /// Releases a message that the application has consumed, and whose event carried `bytes`
    /// payload bytes. It no longer counts as received (CAP-6). Called once for each message, also
    /// for an empty one, which counts as one byte.
    ///
    /// # Panics
    ///
    /// In debug builds, if more is consumed than was received.
    pub fn payload_consumed(&mut self, bytes: usize) {
        self.inbound.budget.receive.consume(bytes);
    }

    /// Handles a report of the system that packets to `to` do not arrive (RPC-14). The peer is
    /// asked at once. If no packet from it arrives for two resend intervals, calls to it fail and
    /// responses to it are dropped, in the next calls of [`Transport::handle_timeout`] (HM
    /// `homa_rpc.c` `homa_abort_rpcs`). [`Unreachable::NotPermitted`] is a lost packet: it is the
    /// reason only if a call ends for the silence of its server (TIME-4).
    ///
    /// In the kernel profile a peer is a host, and `to` has the port of the packet that did not
    /// arrive: if that port is closed, only RPCs with it end.
    pub fn handle_unreachable(&mut self, now: Instant, to: Address, trouble: Unreachable) {
        self.advance(now);
        let profile = self.output.outbound.identity.profile;
        let Some(peer) = self.protocol.tables.peers.find(&peer_address(profile, to)) else {
            return;
        };
        if trouble == Unreachable::NotPermitted {
            self.output.observation.metrics.recovery.sends_not_permitted += 1;
            self.protocol.timers.suspicions.refused(peer, now);
            return;
        }
        let one_port = profile == Profile::Kernel && trouble == Unreachable::PortClosed;
        let port = (one_port && to.port() != 0).then_some(to.port());
        let Self { protocol, output, .. } = self;
        output.observation.metrics.recovery.unreachable_reports += 1;
        let interval = interval(protocol, peer);
        let new = protocol.timers.suspicions.report(peer, port, trouble.reason(), now, interval);
        if new && !ask(protocol, output, peer, port) {
            protocol.timers.suspicions.forget(peer);
            note_closed(protocol, peer, port);
        }
    }

    /// Handles a report about a packet to `to` whose first bytes, `beginning`, were returned: by
    /// ICMP, or by the system, which did not send it. Ignores it unless the packet names a live RPC
    /// of this endpoint: a forged report must guess an id.
    ///
    /// Otherwise as [`Transport::handle_unreachable`]. If the returned packet is part of a request
    /// no packet of which was sent twice, a failure states that the request was not executed.
    pub fn handle_returned(
        &mut self,
        now: Instant,
        to: Address,
        trouble: Unreachable,
        beginning: &[u8],
    ) {
        self.advance(now);
        let Some(rpc) = self.rpc_of_own_packet(to, beginning) else { return };
        if Header::peek_kind(beginning) == Some(Kind::Data) {
            note_returned(&mut self.protocol, rpc);
        }
        self.handle_unreachable(now, to, trouble);
    }

    /// Requests all peers with a session to freeze their time traces, with a FREEZE packet each
    /// (WIRE-16). Returns the number of peers. They obey if configured to. In the kernel profile no
    /// peer is asked, because a peer is a host there and has no port.
    pub fn freeze_peers(&mut self, now: Instant) -> usize {
        self.advance(now);
        if self.output.outbound.identity.profile == Profile::Kernel {
            return 0;
        }
        let freeze = |peer: &Peer| {
            let (role, fields) = match (peer.calls.session(), peer.serving.session()) {
                (session @ Some(_), _) => {
                    let low_water = UdpFields::LOW_WATER_UNKNOWN;
                    (Role::Client, self.output.outbound.identity.client_fields(session, low_water))
                }
                (None, session @ Some(_)) => {
                    (Role::Server, self.output.outbound.identity.server_fields(session))
                }
                (None, None) => return None,
            };
            let body = Body::Freeze;
            let dialect = self.output.outbound.identity.dialect(fields);
            // FREEZE is about no RPC.
            let id = SenderId::new(0, role);
            let (port, to) = (peer.address.port(), peer.address);
            Some((
                to,
                Header::new(body.kind(), self.output.outbound.identity.port, port, id, dialect),
            ))
        };
        let packets: Vec<_> = self.protocol.tables.peers.iter().filter_map(freeze).collect();
        let count = packets.len();
        for (to, header) in packets {
            self.output.enqueue(to, &Packet { header, body: Body::Freeze });
        }
        count
    }

    /// Returns the live RPC named by a packet to `to` that was returned with the first bytes
    /// `beginning`. `None` if there is none, or too few bytes were returned.
    ///
    /// Chosen by us: otherwise any host that can send an ICMP packet could disturb RPCs with any
    /// other host (HM `homa_rpc.c` `homa_abort_rpcs`). Reports of routers that return less than a
    /// header are ignored (RFC 1812 section 4.3.2.3 requires more); RPCs then end by silence.
    fn rpc_of_own_packet(&mut self, to: Address, beginning: &[u8]) -> Option<RpcKey> {
        let id = Header::peek_sender_id(beginning)?;
        let peer = self
            .protocol
            .tables
            .peers
            .find(&peer_address(self.output.outbound.identity.profile, to))?;
        self.protocol.tables.rpcs.find(peer, id.client_id(), id.sender())
    }

    /// Ends all RPCs: calls fail, and requests are refused, as are further ones. The refusals, and
    /// all acks that wait, leave with the next calls of [`Transport::poll_transmit`] (RPC-12). A
    /// request that the application has may have been executed: it counts as abandoned (AMO-5).
    pub fn shut_down(&mut self, now: Instant) {
        self.advance(now);
        self.inbound.shut_down = true;
        self.inbound.buffers.clear();
        let all: Vec<_> = self.protocol.tables.rpcs.iter().map(|(rpc, _)| rpc).collect();
        let Self { protocol, inbound, output, .. } = self;
        for rpc in all {
            let Some(entry) = protocol.tables.rpcs.get(rpc) else { continue };
            match entry.state() {
                SideState::Client(_) => {
                    fail_and_disown(protocol, inbound, output, rpc, FailureKind::ShutDown);
                }
                // The application has the request, and may have executed it (AMO-5).
                SideState::Server(ServerState::InService) => {
                    refuse_live(protocol, inbound, output, rpc, Refusal::Abandoned);
                }
                SideState::Server(ServerState::Incoming) => {
                    refuse_live(protocol, inbound, output, rpc, Refusal::ShuttingDown);
                }
                SideState::Server(ServerState::Outgoing) => {
                    end_server(protocol, inbound, output, rpc, Ending::Discarded);
                }
            }
        }
        let peers: Vec<_> = protocol.tables.peers.ids().collect();
        for peer in peers {
            output.send_waiting_acks(protocol, peer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::error::Execution;
    use crate::event::Event;
    use crate::transport::Call;
    use apus_wire::DATA_HEADER_LEN;

    const NOW: Instant = Instant::ZERO;

    /// A client of the kernel profile whose ids start at `first`.
    fn client(first: u64) -> Transport {
        let config = Config::builder().profile(Profile::Kernel).build().unwrap();
        let mut client = Transport::new(config, 40_000, 1);
        client.set_first_id(first);
        client
    }

    /// Calls `to`; returns the header of the last packet sent.
    fn call(client: &mut Transport, to: &str, cookie: u64) -> Vec<u8> {
        let (to, payload) = (to.parse().unwrap(), vec![7; 5000].into());
        let call = Call { to, payload, cookie, deadline: None, idempotent: false };
        client.call(NOW, call).unwrap();
        let mut first = Vec::new();
        while let Some(transmit) = client.poll_transmit(NOW) {
            first = transmit.headers()[..transmit.header_len()].to_vec();
        }
        first
    }

    /// Cookies of calls that fail until a reported peer has not answered two questions, with their
    /// execution status.
    fn failed(client: &mut Transport, since: Instant) -> Vec<(u64, Execution)> {
        let mut all = Vec::new();
        for millis in 1..30 {
            client.handle_timeout(since.plus(millis * 1_000_000));
            while let Some(event) = client.poll_event() {
                if let Event::Failed { cookie, error, .. } = event {
                    all.push((cookie, error.execution));
                }
            }
        }
        all
    }

    const UNKNOWN: Execution = Execution::Unknown;

    #[test]
    fn ids_begin_at_the_given_one() {
        let mut client = client(1 << 63 | 4);
        for (cookie, id) in [(0, 1 << 63 | 4), (1, 1 << 63 | 6)] {
            let packet = call(&mut client, "10.0.0.1:4000", cookie);
            assert_eq!(packet[20..28], u64::to_be_bytes(id));
        }
    }

    /// HM `homa_plumbing.c` `homa_err_handler_v4`: ENOTCONN for RPCs with that address *and* port.
    #[test]
    fn a_closed_port_of_a_host_ends_calls_to_that_port() {
        let mut client = client(2);
        for (cookie, to) in [(0, "10.0.0.1:4000"), (1, "10.0.0.1:4001"), (2, "10.0.0.2:4000")] {
            call(&mut client, to, cookie);
        }
        let second = |n: u64| NOW.plus(n * 1_000_000_000);
        client.handle_unreachable(NOW, "10.0.0.1:4000".parse().unwrap(), Unreachable::PortClosed);
        assert_eq!(failed(&mut client, NOW), [(0, UNKNOWN)]);
        client.handle_unreachable(
            second(1),
            "10.0.0.1:4000".parse().unwrap(),
            Unreachable::Protocol,
        );
        let ended = failed(&mut client, second(1));
        assert_eq!(ended[0], (1, UNKNOWN), "a host without the protocol has no port");
    }

    /// Source: HM `homa_rpc.c` `homa_abort_rpcs`.
    #[test]
    fn a_returned_packet_must_name_an_rpc_that_lives() {
        let mut client = client(2);
        let packet = call(&mut client, "10.0.0.1:4000", 0);
        let host = "10.0.0.1:4000".parse().unwrap();
        let mut returned = |to: &str, beginning: &[u8]| {
            let to = to.parse().unwrap();
            client.handle_returned(NOW, to, Unreachable::PortClosed, beginning);
            let recovery = client.metrics().recovery;
            recovery.unreachable_reports
        };
        assert_eq!(returned("10.0.0.1:4000", &packet[..27]), 0, "too short to name any");
        assert_eq!(returned("10.0.0.2:4000", &packet), 0, "another host");
        for byte in 20..28 {
            let mut other = packet.clone();
            other[byte] ^= 1;
            assert_eq!(returned("10.0.0.1:4000", &other), 0, "byte {byte}");
        }
        assert_eq!(returned("10.0.0.1:4000", &packet), 1);
        // The packet was returned, and no copy of it has left.
        assert_eq!(failed(&mut client, NOW), [(0, Execution::NotExecuted)]);
        let later = NOW.plus(30_000_000);
        client.handle_returned(later, host, Unreachable::PortClosed, &packet);
        assert_eq!(client.metrics().recovery.unreachable_reports, 1, "it has ended");
    }

    /// "Fragmentation needed" names the port of the packet that was too long; the peer is the host.
    #[test]
    fn a_shorter_packet_limit_holds_for_the_host() {
        let mut client = client(2);
        let to = "10.0.0.1:4000";
        call(&mut client, to, 0);
        client.set_packet_limit(to.parse().unwrap(), 1380);
        let (to, payload) = (to.parse().unwrap(), vec![7; 5000].into());
        let call = Call { to, payload, cookie: 1, deadline: None, idempotent: false };
        client.call(NOW, call).unwrap();
        assert_eq!(client.poll_transmit(NOW).unwrap().segment(), 1380 - DATA_HEADER_LEN);
    }

    /// Every packet to a closed port may cause a report, each about all RPCs with the peer.
    #[test]
    fn a_peer_is_asked_once_however_often_it_is_reported() {
        let now = Instant::from_nanos(1);
        let mut transport = Transport::new(Config::default(), 1, 1);
        let to = ([10, 0, 0, 2], 1).into();
        for cookie in 0..20 {
            let payload = "x".into();
            let call = Call { to, payload, cookie, deadline: None, idempotent: false };
            transport.call(now, call).unwrap();
            transport.handle_unreachable(now, to, Unreachable::PortClosed);
        }
        while transport.poll_transmit(now).is_some() {}
        assert_eq!(transport.metrics().sent(Kind::Resend), 1);
    }
}
