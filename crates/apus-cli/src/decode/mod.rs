//! What do the packets in a capture say?

mod report;

use std::fs::File;
use std::io::{self, BufWriter, Read, StdoutLock, Write};
use std::path::{Path, PathBuf};

use apus_decode::{Decoder, Filter, Links, Packet, Rpc, Summary, Type, json};
use clap::Args;

use self::report::Report;
use crate::failure::Failure;
use crate::output;

/// Say in words what the packets in a capture say
///
/// Reads what tcpdump, Wireshark and apus record (pcap and pcapng; Ethernet, raw IP, loopback, Linux cooked) and
/// prints a line for each packet of Homa: number and time as Wireshark counts them, from whom to whom, and what it says.
/// Both profiles are understood, that of apus (over UDP) and that of the Linux kernel's module (IP protocol 146). In
/// brackets stands what is worth a second look: retransmissions, gaps, bytes seen before, grants that are missing,
/// malformed packets; in parentheses the packet that a packet belongs to. RPCs have the even id that both ends know.
/// What the capture did not see cannot be said: a packet lost before it leaves a gap, one lost behind it none.
///
/// `dissector/apus.lua` in the sources shows the same in Wireshark.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus decode capture.pcap
  apus decode capture.pcapng --rpc 5490
  apus decode capture.pcap --type RESEND,RPC_UNKNOWN,malformed --port 4000
  apus decode capture.pcap --summary --json
  apus decode -")]
pub(crate) struct Arguments {
    /// The capture; `-` reads it from standard input, for instance from `tcpdump -U -w -`, and then packets
    /// are linked to earlier ones only
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Only packets of these RPCs, and those that acknowledge them; with commas between the ids
    #[arg(long, value_name = "IDS", value_delimiter = ',', value_parser = rpc,
          allow_negative_numbers = true)]
    rpc: Vec<u64>,
    /// Only packets of these types, with commas between them: DATA, GRANT, RESEND, RPC_UNKNOWN, BUSY,
    /// CUTOFFS, FREEZE, NEED_ACK, ACK, ICMP, malformed, cut
    #[arg(long = "type", value_name = "TYPES", value_delimiter = ',')]
    types: Vec<Type>,
    /// Only packets from or to these ports, with commas between them; UDP datagrams there are taken for
    /// apus also if they do not look like it
    #[arg(long, value_name = "PORTS", value_delimiter = ',', value_parser = port,
          allow_negative_numbers = true)]
    port: Vec<u16>,
    /// Count packets by type and list RPCs with their times, instead of a line for each packet
    #[arg(long)]
    summary: bool,
    /// Print one JSON object, in which each packet has a line
    #[arg(long)]
    json: bool,
}

fn rpc(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "the id of an RPC is a number; try 5490".to_owned())
}

fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| "ports have the numbers 0 to 65535; try 4000".to_owned())
}

/// Prints what is in the capture.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let path = &arguments.file;
    let filter = Filter {
        rpcs: arguments.rpc.clone(),
        types: arguments.types.clone(),
        ports: arguments.port.clone(),
    };
    let input = Input::open(path)?;
    // Links to later packets need a look at all of them. What is wrong with the file is said the second time.
    let later = match &input {
        Input::File(_) if !arguments.summary => decoder(Input::open(path)?, path, &filter)
            .map_or_else(|_| Vec::new(), Decoder::into_rpcs),
        _ => Vec::new(),
    };
    let live = matches!(input, Input::Stream(_));
    let decoder = decoder(input, path, &filter)?;
    let mut out = Out::new(arguments, live);
    let report = out.decode(decoder, &filter, &later)?;
    out.finish(&report)?;
    report.verdict(path)
}

/// What is read.
enum Input {
    /// Something that can be read twice.
    File(File),
    /// Something that cannot.
    Stream(Box<dyn Read + Send>),
}

impl Input {
    fn open(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self::Stream(Box::new(io::stdin())));
        }
        let opened = File::open(path).and_then(|file| {
            let kind = file.metadata()?.file_type();
            if kind.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            Ok(if kind.is_file() { Self::File(file) } else { Self::Stream(Box::new(file)) })
        });
        opened.map_err(|error| Failure::Argument {
            argument: "<FILE>".to_owned(),
            problem: format!("{}: {error}; name a capture that can be read", path.display()),
        })
    }
}

fn decoder(input: Input, path: &Path, filter: &Filter) -> Result<Decoder, Failure> {
    let decoder = match input {
        Input::File(file) => Decoder::open(file, &filter.ports),
        Input::Stream(stream) => Decoder::open(stream, &filter.ports),
    };
    decoder.map_err(|error| Failure::of(&path.display().to_string(), &error))
}

/// Where packets go, in the form that was asked for.
struct Out<'a> {
    arguments: &'a Arguments,
    to: BufWriter<StdoutLock<'static>>,
    /// Whether somebody waits for each packet.
    live: bool,
    /// How long addresses were so far, so that what comes behind them stands in a column.
    width: usize,
    packets: u64,
}

impl<'a> Out<'a> {
    fn new(arguments: &'a Arguments, live: bool) -> Self {
        let to = BufWriter::new(io::stdout().lock());
        Self { arguments, to, live, width: 0, packets: 0 }
    }

    /// Decodes everything and shows what is wanted of it.
    fn decode(
        &mut self,
        mut decoder: Decoder,
        filter: &Filter,
        later: &[Rpc],
    ) -> Result<Report, Failure> {
        let mut summary = Summary::default();
        let mut trouble = None;
        if self.arguments.json {
            output::written(self.to.write_all(report::head(self.arguments).as_bytes()))?;
        }
        while let Some(next) = decoder.next() {
            let packet = match next {
                Ok(packet) => packet,
                Err(error) => {
                    trouble = Some(error);
                    break;
                }
            };
            if !filter.fits(&packet) {
                continue;
            }
            summary.add(&packet);
            if !self.arguments.summary {
                let rpcs = if later.is_empty() { decoder.rpcs() } else { later };
                output::written(self.packet(&packet, links(&packet, rpcs)))?;
            }
        }
        output::written(self.to.flush())?;
        Ok(Report::new(summary, &decoder, trouble, self.arguments))
    }

    fn packet(&mut self, packet: &Packet, links: Links) -> io::Result<()> {
        self.packets += 1;
        if self.arguments.json {
            let separator = if self.packets == 1 { "" } else { ",\n" };
            write!(self.to, "{separator}{}", json::packet(packet, links))?;
        } else {
            let number = match packet.part {
                (_, 1) => packet.number.to_string(),
                (part, _) => format!("{}.{part}", packet.number),
            };
            let seconds = packet.since_start as f64 / 1e9;
            let (from, to) = packet.ends();
            let ends = format!("{from} > {to}");
            self.width = self.width.max(ends.len());
            let width = self.width;
            writeln!(
                self.to,
                "{number:>7} {seconds:>12.6}  {ends:width$}  {}",
                packet.words(links)
            )?;
        }
        if self.live { self.to.flush() } else { Ok(()) }
    }

    fn finish(&mut self, report: &Report) -> Result<(), Failure> {
        let text = match (self.arguments.json, self.arguments.summary) {
            (true, _) => report.tail(),
            (false, true) => report.text(),
            (false, false) => {
                report.notes().iter().for_each(|note| output::note(note));
                return Ok(());
            }
        };
        output::written(self.to.write_all(text.as_bytes()).and_then(|()| self.to.flush()))
    }
}

/// What a packet belongs to.
fn links(packet: &Packet, rpcs: &[Rpc]) -> Links {
    let rpc = packet.note.as_ref().and_then(|note| Some((rpcs.get(note.rpc.0)?, note.half)));
    rpc.map_or_else(Links::default, |(rpc, half)| rpc.links(half, packet.number))
}
