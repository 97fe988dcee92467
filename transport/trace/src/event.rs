//! Events: the vocabulary of records.
//!
//! One table has each event with its number, its name in files and reports, its scope, and its
//! fields. Numbers and names are never reused. A file contains the names, so that a reader
//! identifies the events of an older or newer writer.

/// The number of a record that holds a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldSource {
    /// [`crate::Record::a`], 32 bits.
    A,
    /// [`crate::Record::b`], 64 bits.
    B,
}

/// Unit of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of items, or a name that is a number.
    Count,
    /// Bytes, or an offset in a message.
    Bytes,
    /// Ticks; [`crate::clock::Calibration::nanos`] converts them.
    Ticks,
    /// Nanoseconds.
    Nanos,
    /// The index of a name in the list [`crate::Head::values`] of this name.
    Name(&'static str),
}

/// A part of a record's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name in tables and exports.
    pub name: &'static str,
    /// Unit of the value.
    pub unit: Unit,
    /// The number that holds the field.
    pub word: FieldSource,
    /// Lowest bit.
    pub shift: u32,
    /// Number of bits.
    pub bits: u32,
}

impl Field {
    const fn new(name: &'static str, unit: Unit, word: FieldSource, shift: u32, bits: u32) -> Self {
        Self { name, unit, word, shift, bits }
    }

    /// Returns a field of all bits of `a`.
    const fn a(name: &'static str, unit: Unit) -> Self {
        Self::new(name, unit, FieldSource::A, 0, 32)
    }

    /// Returns a field of all bits of `b`.
    const fn b(name: &'static str, unit: Unit) -> Self {
        Self::new(name, unit, FieldSource::B, 0, 64)
    }

    /// Returns the value of the field in a record with these numbers.
    #[must_use]
    pub const fn value(&self, a: u32, b: u64) -> u64 {
        let word = match self.word {
            FieldSource::A => a as u64,
            FieldSource::B => b,
        };
        (word >> self.shift) & (u64::MAX >> (64 - self.bits))
    }
}

/// Scope of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventScope {
    /// A stage of an RPC on its way through this host; recorded for traced RPCs.
    Stage,
    /// A packet of an RPC; recorded for traced RPCs.
    Packet,
    /// An event that should be rare, of any RPC: always recorded.
    Anomaly,
    /// An event of a thread, or of a batch of packets: always recorded.
    Thread,
}

/// Declares the table.
macro_rules! events {
    ($($(#[$doc:meta])* $number:literal $event:ident $name:literal $scope:ident [$($field:expr),*];)*) => {
        /// An event that can be recorded.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        #[non_exhaustive]
        pub enum Event {
            $($(#[$doc])* $event = $number,)*
        }

        impl Event {
            /// All events, by number.
            pub const ALL: &[Self] = &[$(Self::$event),*];

            /// Returns the event's name in files and reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$event => $name,)* }
            }

            /// Returns the event's scope.
            #[must_use]
            pub const fn scope(self) -> EventScope {
                match self { $(Self::$event => EventScope::$scope,)* }
            }

            /// Returns the fields in the event's numbers.
            #[must_use]
            pub const fn fields(self) -> &'static [Field] {
                match self { $(Self::$event => const { &[$($field),*] },)* }
            }

            /// Returns the event with this number.
            #[must_use]
            pub const fn from_number(number: u16) -> Option<Self> {
                match number {
                    $($number => Some(Self::$event),)*
                    _ => None,
                }
            }

            /// Returns the event with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$event),)*
                    _ => None,
                }
            }
        }
    };
}

use Unit::{Bytes, Count, Name, Nanos, Ticks};

const LENGTH: Field = Field::b("length", Bytes);
const PACKETS: Field = Field::a("packets", Count);
const TOOK: Field = Field::b("took", Ticks);
const WAITER: Field = Field::b("waiter", Count);
const PART_LENGTH: Field = Field::a("length", Bytes);
const OFFSET: Field = Field::new("offset", Bytes, FieldSource::B, 0, 32);
const PART_PACKETS: Field = Field::new("packets", Count, FieldSource::B, 32, 16);
const PRIORITY: Field = Field::new("priority", Count, FieldSource::B, 48, 8);
const RETRANSMITTED: Field = Field::new("retransmitted", Count, FieldSource::B, 63, 1);
const FLAGS: Field = Field::a("flags", Count);

events! {
    // Stages of an RPC, in the order of their occurrence at each side.

    /// The application has made a call; no work has been done yet. Client.
    1 Call "call" Stage [LENGTH];
    /// The message has been passed to the protocol, which may send it. Both sides.
    2 Queued "queued" Stage [LENGTH];
    /// Packets of the message are about to be passed to the kernel: the moment before the system
    /// call. A message that leaves in several calls has one record each; `from` is the offset of
    /// the first byte.
    3 ToKernel "to_kernel" Stage [PACKETS, Field::b("from", Bytes)];
    /// A batch with packets of the RPC has been received from the kernel: the moment after the
    /// system call.
    4 FromKernel "from_kernel" Stage [PACKETS];
    /// The protocol has the whole message: a response at the client, a request at the server.
    5 Parsed "parsed" Stage [LENGTH];
    /// The message is available to its receiver. `waiter` is the notified waiter; 0 if none had to
    /// be notified, because the leader receives the message itself, or no thread waits yet.
    6 HandedOff "handed_off" Stage [WAITER];
    /// The thread that receives the message runs. `waiter` as in `handed_off`; 0 if it was awake.
    7 Woken "woken" Stage [WAITER];
    /// The application receives the response, or the error if `length` is 0. Client.
    8 Returned "returned" Stage [LENGTH];
    /// The application receives the request. Server.
    9 RequestReturned "request_returned" Stage [LENGTH];
    /// The application has replied; no work has been done yet. Server.
    10 Reply "reply" Stage [LENGTH];
    /// The message has been written into memory shared with the peer: `to_kernel` of the local
    /// path.
    11 LocalSent "local_sent" Stage [LENGTH];
    /// The message has been read from shared memory: `parsed` of the local path.
    12 LocalReceived "local_received" Stage [LENGTH];

    // Packets.

    /// The protocol sends pieces of a message: a burst of packets; `offset` is that of the first.
    32 DataSent "data_sent" Packet [PART_LENGTH, OFFSET, PART_PACKETS, PRIORITY, RETRANSMITTED];
    /// A piece of a message has been received. `priority` is not known.
    33 DataReceived "data_received" Packet [PART_LENGTH, OFFSET, PART_PACKETS, PRIORITY, RETRANSMITTED];
    /// A grant has been sent: the peer may send all bytes before `offset`.
    34 GrantSent "grant_sent" Packet [Field::a("priority", Count), Field::b("offset", Bytes)];
    /// A grant has been received: this host may send all bytes before `offset`.
    35 GrantReceived "grant_received" Packet [Field::a("priority", Count), Field::b("offset", Bytes)];
    /// Granted bytes are sent; all before `offset` have been sent now.
    36 GrantUsed "grant_used" Packet [Field::a("priority", Count), Field::b("offset", Bytes)];
    /// BUSY has been sent: this host is alive, and the peer must wait.
    37 BusySent "busy_sent" Packet [FLAGS];
    /// BUSY has been received: the peer is alive, and this host must wait.
    38 BusyReceived "busy_received" Packet [FLAGS];
    /// NEED_ACK has been sent: asks whether the RPC's state is still needed.
    39 NeedAckSent "need_ack_sent" Packet [FLAGS];
    /// NEED_ACK has been received.
    40 NeedAckReceived "need_ack_received" Packet [FLAGS];
    /// ACK has been sent: the server may forget the RPC.
    41 AckSent "ack_sent" Packet [FLAGS];
    /// ACK has been received.
    42 AckReceived "ack_received" Packet [FLAGS];
    /// CUTOFFS has been sent: the priorities of unscheduled packets.
    43 CutoffsSent "cutoffs_sent" Packet [];
    /// CUTOFFS has been received.
    44 CutoffsReceived "cutoffs_received" Packet [];
    /// The message has bytes to send, and the pacer delays them. Recorded for all RPCs.
    45 Throttled "throttled" Anomaly [Field::b("for", Nanos)];

    // Anomalies: events that should be rare.

    /// RESEND has been sent: bytes of a message are missing here. A length of 2^32 - 1 requests
    /// everything sent so far.
    64 ResendSent "resend_sent" Anomaly [PART_LENGTH, OFFSET, PRIORITY];
    /// RESEND has been received: the peer misses bytes.
    65 ResendReceived "resend_received" Anomaly [PART_LENGTH, OFFSET, PRIORITY];
    /// RPC_UNKNOWN has been sent: this host does not know the RPC, or will not serve it.
    66 RpcUnknownSent "rpc_unknown_sent" Anomaly [FLAGS];
    /// RPC_UNKNOWN has been received.
    67 RpcUnknownReceived "rpc_unknown_received" Anomaly [FLAGS];
    /// A packet has arrived ahead of others: `length` bytes from `offset` on are missing.
    68 Lost "lost" Anomaly [PART_LENGTH, OFFSET];
    /// The request is sent again from its start, or the peer was restarted and the RPC continues or
    /// fails.
    69 Restart "restart" Anomaly [Field::a("cause", Name("restart"))];
    /// A packet was dropped.
    70 Dropped "dropped" Anomaly [Field::a("reason", Name("drop_reason"))];
    /// The RPC has failed.
    71 Failed "failed" Anomaly [Field::a("reason", Name("fail_reason"))];
    /// The call took longer than the trace's settings allow.
    72 Slow "slow" Anomaly [Field::b("took", Nanos)];
    /// FREEZE has been sent: asks a peer to freeze its trace.
    73 FreezeSent "freeze_sent" Anomaly [];
    /// FREEZE has been received.
    74 FreezeReceived "freeze_received" Anomaly [];
    /// The trace is frozen: the last record, except for those that other threads were about to
    /// write.
    75 Frozen "frozen" Anomaly [Field::a("reason", Name("freeze_reason"))];

    // Threads and batches.

    /// Packets were received from the socket. Polls that find no packets are not recorded.
    96 Look "look" Thread [PACKETS, TOOK];
    /// Packets were passed to the socket, by one or several system calls.
    97 Send "send" Thread [PACKETS, TOOK];
    /// A pass of the loop has ended that received packets, or in which a timer was due.
    98 Pass "pass" Thread [PACKETS, TOOK];
    /// The thread is about to sleep.
    99 Sleep "sleep" Thread [Field::a("on", Name("sleep")), WAITER];
    /// The thread is awake.
    100 Wake "wake" Thread [Field::a("on", Name("sleep")), WAITER];
    /// The poll role passes to another thread, named by `waiter`.
    101 PassTurn "pass_turn" Thread [WAITER];
    /// A quota ended a pass before all work was done.
    102 QuotaHit "quota_hit" Thread [Field::a("work", Name("work"))];
    /// Reception stops, because too many requests wait.
    103 FeedbackStop "feedback_stop" Thread [Field::a("waiting", Count)];

    // The file service: the way of an operation, from the kernel of a client and back to it.

    /// The mount has read an operation of an application from the kernel. Recorded for one
    /// operation in as many as RPCs are traced, with its reply.
    128 FsOperation "fs_operation" Thread [Field::a("kind", Name("fs_operation")), Field::b("id", Count)];
    /// The mount calls the server. One call may serve several operations.
    129 FsCall "fs_call" Thread [Field::a("kind", Name("fs_request")), Field::b("call", Count)];
    /// The server has received a request; no work has been done yet.
    130 FsRequest "fs_request" Thread [Field::a("kind", Name("fs_request")), Field::b("request", Count)];
    /// The server has made changes durable, and applied them: one commit for all requests that had
    /// arrived.
    131 FsCommit "fs_commit" Thread [Field::a("commits", Count), TOOK];
    /// The server responds.
    132 FsRespond "fs_respond" Thread [Field::b("request", Count)];
    /// The mount has received a response.
    133 FsResponse "fs_response" Thread [Field::b("call", Count)];
    /// The mount replies to the kernel. `error` is the number of the error; 0 if there is none.
    134 FsReply "fs_reply" Thread [Field::a("error", Count), Field::b("id", Count)];
}

/// A burst of DATA packets, in the fields of `data_sent` and `data_received`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataFields {
    /// Bytes of payload.
    pub length: u32,
    /// Offset of the first byte in the message.
    pub offset: u32,
    /// Number of packets.
    pub packets: u16,
    /// Priority of the packets, 0 to 7; 0 if it is not known.
    pub priority: u8,
    /// Whether the bytes were sent before.
    pub retransmitted: bool,
}

impl DataFields {
    /// Returns the numbers of a record.
    #[must_use]
    pub const fn to_numbers(self) -> (u32, u64) {
        let b = self.offset as u64
            | (self.packets as u64) << PART_PACKETS.shift
            | (self.priority as u64) << PRIORITY.shift
            | (self.retransmitted as u64) << RETRANSMITTED.shift;
        (self.length, b)
    }

    /// Reads the numbers of a record; also valid for `resend_sent`, `resend_received` and `lost`.
    #[must_use]
    pub const fn from_numbers(a: u32, b: u64) -> Self {
        Self {
            length: a,
            offset: OFFSET.value(a, b) as u32,
            packets: PART_PACKETS.value(a, b) as u16,
            priority: PRIORITY.value(a, b) as u8,
            retransmitted: RETRANSMITTED.value(a, b) == 1,
        }
    }
}

/// Causes of [`Event::Restart`], in the order of their numbers.
pub const RESTARTS: &[&str] = &["rpc unknown", "peer restarted"];

/// What a thread sleeps on ([`Event::Sleep`]), in the order of the numbers: the network, with the
/// poll role; or its waiter, until the leader notifies it.
pub const SLEEPS: &[&str] = &["network", "waiter"];

/// Work that quotas limit ([`Event::QuotaHit`]), in the order of the numbers.
pub const WORKS: &[&str] = &["receive", "transmit", "timers", "deliveries"];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn numbers_and_names_lead_back_to_their_events() {
        for event in Event::ALL {
            assert_eq!(Event::from_number(*event as u16), Some(*event));
            assert_eq!(Event::from_name(event.name()), Some(*event));
        }
        assert_eq!(Event::from_number(0), None);
        assert_eq!(Event::from_name("nonsense"), None);
        let names: BTreeSet<&str> = Event::ALL.iter().map(|event| event.name()).collect();
        assert_eq!(names.len(), Event::ALL.len());
    }

    #[test]
    fn the_fields_of_an_event_do_not_overlap() {
        for event in Event::ALL {
            let mut used = [0_u64; 2];
            for field in event.fields() {
                let width = if field.word == FieldSource::A { 32 } else { 64 };
                assert!(field.bits > 0 && field.shift + field.bits <= width, "{event:?} {field:?}");
                let mask = (u64::MAX >> (64 - field.bits)) << field.shift;
                let word = &mut used[usize::from(field.word == FieldSource::B)];
                assert_eq!(*word & mask, 0, "{event:?} {field:?}");
                *word |= mask;
            }
        }
    }

    #[test]
    fn the_fields_of_a_burst_agree_with_the_table() {
        let burst = DataFields {
            length: 1_400,
            offset: u32::MAX,
            packets: 0xabcd,
            priority: 7,
            retransmitted: true,
        };
        let (a, b) = burst.to_numbers();
        assert_eq!(DataFields::from_numbers(a, b), burst);
        let values: Vec<_> =
            Event::DataSent.fields().iter().map(|field| field.value(a, b)).collect();
        assert_eq!(values, [1_400, u64::from(u32::MAX), 0xabcd, 7, 1]);
    }
}
