//! DecodeArguments of `apus decode`.

use std::path::PathBuf;

use apus_decode::{PacketFilter, PacketType};
use clap::Args;

/// Decode the Homa packets of a capture, one line of text for each
///
/// Reads what tcpdump, Wireshark and apus record (pcap and pcapng; Ethernet, raw IP, loopback,
/// Linux cooked) and prints a line for each packet of Homa: number and time as Wireshark counts
/// them, source and destination, and content. Both wire profiles are decoded: apus (over UDP) and
/// the Linux kernel's module (IP protocol 146).
///
/// Brackets contain what deserves attention: retransmissions, gaps, duplicate bytes, missing
/// grants, malformed packets. Parentheses name the packet that a packet belongs to. An RPC is shown
/// with its even id, which both ends use. A packet that is lost before the point of capture leaves
/// a gap; a packet that is lost behind it leaves no mark.
///
/// Of sealed packets only the headers can be read. With --keys, the packets of those handshakes are
/// opened that are in the capture and of which the file has the secrets: `apus serve`, `apus call`
/// and the other commands write them to the file that the variable SSLKEYLOGFILE names.
///
/// `dissector/apus.lua` in the sources decodes the same packets in Wireshark.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus decode capture.pcap
  apus decode capture.pcapng --rpc 5490
  apus decode capture.pcap --type RESEND,RPC_UNKNOWN,malformed --port 4000
  apus decode capture.pcap --summary --json
  SSLKEYLOGFILE=keys.log apus call --sealed host-a:4000 hello; apus decode capture.pcap --keys keys.log
  apus decode -")]
pub(crate) struct DecodeArguments {
    /// The capture. `-` reads standard input, for instance from `tcpdump -U -w -`; packets are then
    /// linked only to earlier ones
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    /// Only packets of these RPCs, and packets that acknowledge them; ids separated by commas
    #[arg(long, value_name = "IDS", value_delimiter = ',', value_parser = rpc,
          allow_negative_numbers = true)]
    pub(super) rpc: Vec<u64>,
    /// Only packets of these types, separated by commas: DATA, GRANT, RESEND, RPC_UNKNOWN, BUSY,
    /// CUTOFFS, FREEZE, NEED_ACK, ACK, sealed, ICMP, malformed, cut
    #[arg(long = "type", value_name = "TYPES", value_delimiter = ',')]
    pub(super) types: Vec<PacketType>,
    /// Only packets from or to these ports, separated by commas. UDP datagrams of these ports are
    /// decoded as packets of apus even if they do not look like it
    #[arg(long, value_name = "PORTS", value_delimiter = ',', value_parser = port,
          allow_negative_numbers = true)]
    pub(super) port: Vec<u16>,
    /// Open sealed packets with the secrets in this key log file
    #[arg(long, value_name = "FILE")]
    pub(super) keys: Option<PathBuf>,
    /// Count packets by type and list RPCs with their times, instead of printing every packet
    #[arg(long)]
    pub(super) summary: bool,
    /// Print one JSON object, with one line for each packet
    #[arg(long)]
    pub(super) json: bool,
}

impl DecodeArguments {
    /// Returns the filter for packets.
    pub(super) fn filter(&self) -> PacketFilter {
        PacketFilter { rpcs: self.rpc.clone(), types: self.types.clone(), ports: self.port.clone() }
    }
}

fn rpc(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "the id of an RPC is a number; try 5490".to_owned())
}

fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| "a port is a number from 0 to 65535; try 4000".to_owned())
}
