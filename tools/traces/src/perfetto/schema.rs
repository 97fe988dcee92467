//! Which parts of Perfetto's trace format do we write?
//!
//! The messages of `protos/perfetto/trace/` with the fields that are needed here, by their published numbers; what
//! reads our files ignores what is not there. Every field is optional, as there.

/// A file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Trace {
    /// In any order.
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

/// One of: a track is described, or something happens on one.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TracePacket {
    /// When, in nanoseconds.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// Who wrote the packet: not 0, the same in all of ours.
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    /// Something happens.
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    /// [`Self::BEGINNING`] in the first packet of a writer.
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    /// A track.
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
}

impl TracePacket {
    /// `SEQ_INCREMENTAL_STATE_CLEARED`: nothing that came before is needed.
    pub const BEGINNING: u32 = 1;
}

/// A line of the display.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TrackDescriptor {
    /// Its number: not 0, its own in the whole file.
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    /// What it is called.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// It is a process.
    #[prost(message, optional, tag = "3")]
    pub process: Option<ProcessDescriptor>,
    /// It is a thread.
    #[prost(message, optional, tag = "4")]
    pub thread: Option<ThreadDescriptor>,
    /// The track below which it is shown.
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    /// It is a number that changes.
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
}

/// A process.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ProcessDescriptor {
    /// Its number.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// Its name.
    #[prost(string, optional, tag = "6")]
    pub process_name: Option<String>,
}

/// A thread.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ThreadDescriptor {
    /// Number of its process.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// Its number.
    #[prost(int64, optional, tag = "2")]
    pub tid: Option<i64>,
    /// Its name.
    #[prost(string, optional, tag = "5")]
    pub thread_name: Option<String>,
}

/// A number that changes.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CounterDescriptor {
    /// What it counts.
    #[prost(enumeration = "Unit", optional, tag = "3")]
    pub unit: Option<i32>,
}

/// What a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Unit {
    /// Not said.
    Unspecified = 0,
    /// Things.
    Count = 2,
    /// Bytes.
    SizeBytes = 3,
}

/// Something happens on a track.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TrackEvent {
    /// What is known about it.
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    /// What kind of event.
    #[prost(enumeration = "Type", optional, tag = "9")]
    pub r#type: Option<i32>,
    /// The track.
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    /// What it is a kind of, to filter by.
    #[prost(string, repeated, tag = "22")]
    pub categories: Vec<String>,
    /// What it is called.
    #[prost(string, optional, tag = "23")]
    pub name: Option<String>,
    /// The counter's value from now on.
    #[prost(int64, optional, tag = "30")]
    pub counter_value: Option<i64>,
    /// Arrows: events with the same number are connected in the order of their times.
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flow_ids: Vec<u64>,
    /// The same, where an arrow ends.
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub terminating_flow_ids: Vec<u64>,
}

/// What kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Type {
    /// Not said.
    Unspecified = 0,
    /// Something begins that has an end on the same track; slices nest.
    SliceBegin = 1,
    /// The last one that began ends.
    SliceEnd = 2,
    /// Something happens that takes no time.
    Instant = 3,
    /// A counter changes.
    Counter = 4,
}

/// A name with a value.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DebugAnnotation {
    /// A value that is a number.
    #[prost(uint64, optional, tag = "3")]
    pub uint_value: Option<u64>,
    /// A value that is a text.
    #[prost(string, optional, tag = "6")]
    pub string_value: Option<String>,
    /// The name.
    #[prost(string, optional, tag = "10")]
    pub name: Option<String>,
}
