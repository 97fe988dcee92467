//! Packet format between a doctor and a listener.
//!
//! ```text
//!  0               8               16      20  21  22      24          32
//! +---------------+---------------+-------+---+---+-------+-----------+----------------- - -
//! | "apusdoc1"    | session       | number|kin|cls| room  | zeros     | response, then padding
//! +---------------+---------------+-------+---+---+-------+-----------+----------------- - -
//! ```
//!
//! Numbers are big endian. A response repeats session, number, and kind with the highest bit set,
//! followed by the properties of the request's packet, or by the counts of the session.
//!
//! # Invariants
//!
//! - **PROBE-1** A response is never longer than its request, so a listener cannot amplify traffic.
//! - **PROBE-2** Parsing never panics, and an invalid packet gets no response.

/// First bytes of each packet; version 1.
const MAGIC: [u8; 8] = *b"apusdoc1";

/// Minimum length of requests and responses in bytes.
pub(super) const MIN_LEN: usize = 64;

const ANSWER: u8 = 0x80;

/// Kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    /// Reports the properties of this packet.
    Echo = 1,
    /// Counts this packet, without a response.
    Count = 2,
    /// Reports the counts of the session.
    Tally = 3,
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProbeRequest {
    /// Random number chosen by the client.
    pub(super) session: u64,
    /// Number of the request within the session.
    pub(super) number: u32,
    pub(super) kind: RequestKind,
    /// Traffic class of the response.
    pub(super) class: u8,
    /// Length of the response in bytes, limited to the length of the request (PROBE-1).
    pub(super) room: u16,
}

/// Properties of a request's packet, and counts of its session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Observation {
    /// Traffic class of the request on arrival.
    pub(super) class: u8,
    /// Length of the request in bytes.
    pub(super) length: u32,
    /// Number of counted packets.
    pub(super) packets: u32,
    /// Number of receive calls that returned the packets; smaller if packets were merged.
    pub(super) receives: u32,
}

impl ProbeRequest {
    /// Writes the request to the start of a packet.
    pub(super) fn emit(&self, out: &mut [u8; MIN_LEN]) {
        out.fill(0);
        out[..8].copy_from_slice(&MAGIC);
        out[8..16].copy_from_slice(&self.session.to_be_bytes());
        out[16..20].copy_from_slice(&self.number.to_be_bytes());
        out[20] = self.kind as u8;
        out[21] = self.class;
        out[22..24].copy_from_slice(&self.room.to_be_bytes());
    }

    /// Parses a request (PROBE-2).
    pub(super) fn parse(packet: &[u8]) -> Option<Self> {
        let head: &[u8; MIN_LEN] = packet.first_chunk()?;
        if head[..8] != MAGIC {
            return None;
        }
        let kind = match head[20] {
            1 => RequestKind::Echo,
            2 => RequestKind::Count,
            3 => RequestKind::Tally,
            _ => return None,
        };
        Some(Self {
            session: u64::from_be_bytes(*head[8..].first_chunk()?),
            number: u32::from_be_bytes(*head[16..].first_chunk()?),
            kind,
            class: head[21],
            room: u16::from_be_bytes(*head[22..].first_chunk()?),
        })
    }

    /// Returns the response to a request of `question` bytes.
    pub(super) fn answer(&self, observation: &Observation, request: usize) -> Vec<u8> {
        let mut head = [0; MIN_LEN];
        self.emit(&mut head);
        head[20] |= ANSWER;
        head[32] = observation.class;
        for (place, value) in
            [(36, observation.length), (40, observation.packets), (44, observation.receives)]
        {
            head[place..place + 4].copy_from_slice(&value.to_be_bytes());
        }
        let length = usize::from(self.room).clamp(MIN_LEN, request.max(MIN_LEN));
        let mut answer = head.to_vec();
        answer.resize(length, 0);
        answer
    }

    /// Parses the response to this request; `None` for any other packet.
    pub(super) fn parse_response(&self, packet: &[u8]) -> Option<Observation> {
        let mut head: [u8; MIN_LEN] = *packet.first_chunk()?;
        if head[20] & ANSWER == 0 {
            return None;
        }
        head[20] &= !ANSWER;
        let request = Self::parse(&head)?;
        if (request.session, request.number, request.kind) != (self.session, self.number, self.kind)
        {
            return None;
        }
        let number =
            |place: usize| head[place..].first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
        Some(Observation {
            class: head[32],
            length: number(36)?,
            packets: number(40)?,
            receives: number(44)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: ProbeRequest = ProbeRequest {
        session: 0x0123_4567_89ab_cdef,
        number: 7,
        kind: RequestKind::Echo,
        class: 0xe0,
        room: 900,
    };

    fn bytes(request: &ProbeRequest, length: usize) -> Vec<u8> {
        let mut head = [0; MIN_LEN];
        request.emit(&mut head);
        let mut bytes = head.to_vec();
        bytes.resize(length, 0);
        bytes
    }

    #[test]
    fn requests_and_responses_survive_a_round_trip() {
        let packet = bytes(&REQUEST, 1_000);
        assert_eq!(ProbeRequest::parse(&packet), Some(REQUEST));
        let observation = Observation { class: 0x20, length: 1_000, packets: 44, receives: 3 };
        let answer = REQUEST.answer(&observation, packet.len());
        assert_eq!((REQUEST.parse_response(&answer), answer.len()), (Some(observation), 900));
        assert_eq!(ProbeRequest { number: 8, ..REQUEST }.parse_response(&answer), None);
        assert_eq!((ProbeRequest::parse(&answer), REQUEST.parse_response(&packet)), (None, None));
    }

    #[test]
    fn a_response_is_never_longer_than_its_request() {
        let greedy = ProbeRequest { room: u16::MAX, ..REQUEST };
        assert_eq!(greedy.answer(&Observation::default(), 300).len(), 300);
        assert_eq!(
            ProbeRequest { room: 0, ..REQUEST }.answer(&Observation::default(), 300).len(),
            MIN_LEN
        );
    }

    #[test]
    fn invalid_packets_are_rejected() {
        let packet = bytes(&REQUEST, MIN_LEN);
        assert_eq!(ProbeRequest::parse(&packet[..MIN_LEN - 1]), None);
        for place in [0, 20] {
            let mut wrong = packet.clone();
            wrong[place] = 9;
            assert_eq!(ProbeRequest::parse(&wrong), None);
        }
        assert_eq!(ProbeRequest::parse(&[]), None);
        // No input panics.
        for length in 0..2 * MIN_LEN {
            for filling in 0..=u8::MAX {
                let mut bytes = vec![filling; length];
                let begins = MAGIC.len().min(length);
                bytes[..begins].copy_from_slice(&MAGIC[..begins]);
                if let Some(request) = ProbeRequest::parse(&bytes) {
                    assert!(request.answer(&Observation::default(), length).len() <= length);
                }
                assert_eq!(REQUEST.parse_response(&bytes), None);
            }
        }
    }
}
