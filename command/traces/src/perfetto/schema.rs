//! The subset of Perfetto's trace format that the export uses.
//!
//! The messages of `protos/perfetto/trace/`, with the required fields and their published numbers.
//! Every field is optional, as in the original; readers ignore missing fields.

/// A trace file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Trace {
    /// Packets in any order.
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

/// A packet: describes a track, or contains an event on one.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TracePacket {
    /// Time in nanoseconds.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// Id of the writer: not 0, the same in all packets of the file.
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    /// An event on a track.
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    /// [`Self::BEGINNING`] in the first packet of a writer.
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    /// Description of a track.
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
}

impl TracePacket {
    /// `SEQ_INCREMENTAL_STATE_CLEARED`: the packet depends on no earlier one.
    pub const BEGINNING: u32 = 1;
}

/// A track of the display.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TrackDescriptor {
    /// Id of the track: not 0, unique in the file.
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    /// Name of the track.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// Present if the track is a process.
    #[prost(message, optional, tag = "3")]
    pub process: Option<ProcessDescriptor>,
    /// Present if the track is a thread.
    #[prost(message, optional, tag = "4")]
    pub thread: Option<ThreadDescriptor>,
    /// The parent track in the display.
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    /// Present if the track is a counter.
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
}

/// A process.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ProcessDescriptor {
    /// Process id.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// Name of the process.
    #[prost(string, optional, tag = "6")]
    pub process_name: Option<String>,
}

/// A thread.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ThreadDescriptor {
    /// Process id.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// Thread id.
    #[prost(int64, optional, tag = "2")]
    pub tid: Option<i64>,
    /// Name of the thread.
    #[prost(string, optional, tag = "5")]
    pub thread_name: Option<String>,
}

/// A counter.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CounterDescriptor {
    /// Unit of the counter.
    #[prost(enumeration = "Unit", optional, tag = "3")]
    pub unit: Option<i32>,
}

/// Unit of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Unit {
    /// Unknown.
    Unspecified = 0,
    /// Number of items.
    Count = 2,
    /// Bytes.
    SizeBytes = 3,
}

/// An event on a track.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TrackEvent {
    /// Arguments of the event.
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    /// Kind of the event.
    #[prost(enumeration = "Type", optional, tag = "9")]
    pub r#type: Option<i32>,
    /// The track.
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    /// Categories, to filter by.
    #[prost(string, repeated, tag = "22")]
    pub categories: Vec<String>,
    /// Name of the event.
    #[prost(string, optional, tag = "23")]
    pub name: Option<String>,
    /// New value of the counter.
    #[prost(int64, optional, tag = "30")]
    pub counter_value: Option<i64>,
    /// Arrows: events with the same id are connected in chronological order.
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flow_ids: Vec<u64>,
    /// Arrows that end at this event.
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub terminating_flow_ids: Vec<u64>,
}

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Type {
    /// Unknown.
    Unspecified = 0,
    /// Start of a slice; slices of a track nest.
    SliceBegin = 1,
    /// End of the most recently started slice.
    SliceEnd = 2,
    /// An event without duration.
    Instant = 3,
    /// A new value of a counter.
    Counter = 4,
}

/// Argument of an event: a name with a value.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DebugAnnotation {
    /// Value of a numeric argument.
    #[prost(uint64, optional, tag = "3")]
    pub uint_value: Option<u64>,
    /// Value of a text argument.
    #[prost(string, optional, tag = "6")]
    pub string_value: Option<String>,
    /// Name of the argument.
    #[prost(string, optional, tag = "10")]
    pub name: Option<String>,
}
