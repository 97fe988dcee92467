//! `apus serve`: an echo service that runs until it is interrupted.

use std::io::{self, IsTerminal};
use std::iter;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use apus::{Closed, Endpoint, EndpointBuilder, PollMode, Settings, Shards};
use clap::Args;
use serde_json::json;

use crate::address::Address;
use crate::path::Path;
use crate::sealing::Sealing;
use crate::tracing::Tracing;
use apus_command_line::configuration::Configuration;
use apus_command_line::driver::{Driver, bind_failure};
use apus_command_line::failure::Failure;
use apus_command_line::output;
use apus_command_line::signals;
use apus_doctor::doctor;

/// Run an echo service, which returns every request unchanged
///
/// Prints `listening on ADDR` once it accepts requests, and serves until it receives SIGINT
/// (Ctrl-C) or SIGTERM. Replies in flight then have one second to arrive; a second signal ends the
/// service immediately. At the end it prints on standard error how much it served. On a terminal it
/// also checks this host in the first second, and offers `apus doctor` if something slows messages
/// down.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus serve 127.0.0.1:4000
  apus serve 127.0.0.1:0 --receivers 2
  apus serve [::]:4000 --shards auto
  apus serve 127.0.0.1:0 --trace all --trace-file server.tt
  apus serve [::]:4000 --poll spin
  apus serve --sealed 127.0.0.1:4000
  apus serve 10.0.0.1:4000 --driver raw")]
pub(crate) struct ServeArguments {
    /// Address to listen on, HOST:PORT. Port 0 picks a free one. `[::]:4000` listens on all
    /// addresses of the host, IPv4 and IPv6; with --driver raw it listens on the IPv6 addresses,
    /// and `0.0.0.0:4000` on the IPv4 addresses
    #[arg(value_name = "ADDR", default_value = "127.0.0.1:4000", value_parser = Address::parse_local)]
    address: Address,
    /// Sockets at the address, each with its own loop, so that several cores receive: 1 to 64, or
    /// `auto` for one per core that this process may use, 8 at most. Each client belongs to one of
    /// them [default: 1, or the value in --config]
    #[arg(long, value_name = "SHARDS", allow_negative_numbers = true)]
    shards: Option<Shards>,
    /// Threads that receive requests and reply to them: 1 to 1024 [default: as many as shards, or
    /// the value in --config]
    #[arg(long, value_name = "THREADS", value_parser = parse_receivers, allow_negative_numbers = true)]
    receivers: Option<usize>,
    /// How to wait for packets: `spin`, `block`, or `hybrid=MICROSECONDS`, which spins for that
    /// time and then sleeps (`hybrid` alone: 50) [default: hybrid, or the value in --config]
    #[arg(long, value_name = "MODE")]
    poll: Option<PollMode>,
    #[command(flatten)]
    configuration: Configuration,
    #[command(flatten)]
    sealing: Sealing,
    /// Driver that carries packets
    #[arg(long, value_name = "DRIVER", value_enum, default_value_t = Driver::Udp)]
    driver: Driver,
    /// How messages reach peers on this host
    #[arg(long, value_name = "PATH", value_enum, default_value_t = Path::Auto)]
    path: Path,
    #[command(flatten)]
    tracing: Tracing,
    /// Print two JSON objects, one per line: the address at the beginning, the totals at the end
    #[arg(long)]
    json: bool,
}

/// Time for the last replies to arrive after the first signal. Chosen by us: a reply to a running
/// client arrives within milliseconds, and a user who presses Ctrl-C does not want to wait.
const LAST_REPLIES: Duration = Duration::from_secs(1);

/// Maximum number of receiving threads.
const MAX_RECEIVERS: usize = 1024;

/// Returns the settings of the configuration file, overridden by the arguments.
fn builder(settings: &Settings, arguments: &ServeArguments) -> EndpointBuilder {
    let mut builder = arguments.path.apply(Endpoint::builder().settings(settings));
    if let Some(shards) = arguments.shards {
        builder = builder.shards(shards);
    }
    match arguments.poll {
        Some(poll) => builder.poll_mode(poll),
        None => builder,
    }
}

fn parse_receivers(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=MAX_RECEIVERS).contains(number));
    number.ok_or_else(|| "the number of receiving threads is 1 to 1024; try 2".to_owned())
}

/// Totals of a receiving thread, or of all of them.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    /// Requests received.
    messages: u64,
    /// Bytes of these requests.
    bytes: u64,
    /// Replies not sent because the client no longer waited for them.
    unwanted: u64,
}

/// Why the service ends.
enum End {
    Signal,
    Broken(Closed),
}

/// Serves until it is interrupted.
///
/// # Errors
///
/// An argument is invalid, the address cannot be bound, or the endpoint fails.
pub(crate) fn run(arguments: &ServeArguments) -> Result<(), Failure> {
    let (ends, first_end) = channel();
    arguments.tracing.begin()?;
    let signal_ends = ends.clone();
    // The channel is closed if the service is already shutting down.
    signals::on_first(move || drop(signal_ends.send(End::Signal)))
        .map_err(|error| Failure::of("catch signals", &error))?;
    let mut settings = arguments.configuration.read()?;
    arguments.sealing.apply(&mut settings)?;
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let builder = arguments.driver.apply(builder(&settings, arguments), any);
    let endpoint = builder.bind(arguments.address.as_str()).map_err(|error| {
        bind_failure(&error, "`apus serve 127.0.0.1:0` listens on any free port.")
    })?;
    let receivers = arguments.receivers.or(settings.receivers).unwrap_or(endpoint.shards());
    let receivers = receivers.clamp(1, MAX_RECEIVERS);
    let (end, totals) = thread::scope(|scope| {
        let receivers = start(receivers, &endpoint, &ends, scope);
        let ready = print_address(&endpoint, arguments.json);
        offer_doctor(arguments.json, settings);
        let end = ready.map(|()| first_end.recv().expect("this thread holds a sender"));
        if let Ok(End::Signal) = end {
            endpoint.drain(LAST_REPLIES);
        }
        endpoint.shutdown();
        (end, sum(receivers))
    });
    print_totals(totals, arguments.json)?;
    arguments.tracing.end()?;
    match end? {
        End::Signal => Ok(()),
        End::Broken(why) => Err(Failure::Work(why.to_string())),
    }
}

type Receiver<'scope> = ScopedJoinHandle<'scope, Totals>;

/// Starts `count` threads that reply to requests until the endpoint is closed.
fn start<'scope, 'env>(
    count: usize,
    endpoint: &'env Endpoint,
    ends: &'env Sender<End>,
    scope: &'scope Scope<'scope, 'env>,
) -> Vec<Receiver<'scope>> {
    let receiver = || scope.spawn(|| receive(endpoint, ends));
    iter::repeat_with(receiver).take(count).collect()
}

fn receive(endpoint: &Endpoint, ends: &Sender<End>) -> Totals {
    let mut totals = Totals::default();
    loop {
        let request = match endpoint.recv_request() {
            Ok(request) => request,
            Err(Closed::ShutDown) => return totals,
            Err(why) => {
                // Another thread may have reported the failure first and ended the service.
                let _ = ends.send(End::Broken(why));
                return totals;
            }
        };
        let payload = request.payload().clone();
        totals.messages += 1;
        totals.bytes += payload.len() as u64;
        totals.unwanted += u64::from(request.reply(payload).is_err());
    }
}

fn sum(receivers: Vec<Receiver<'_>>) -> Totals {
    let totals = receivers.into_iter().map(|thread| thread.join().expect("no receiver panics"));
    totals.fold(Totals::default(), |sum, one| Totals {
        messages: sum.messages + one.messages,
        bytes: sum.bytes + one.bytes,
        unwanted: sum.unwanted + one.unwanted,
    })
}

fn print_address(endpoint: &Endpoint, json: bool) -> Result<(), Failure> {
    let address = endpoint.local_addr();
    if json {
        output::line(&json!({ "listening": address }).to_string())
    } else {
        output::line(&format!("listening on {address}"))
    }
}

/// Offers `apus doctor` to a person if this host, or the configuration, slows messages down.
/// Requests are served meanwhile; scripts that parse the output or measure get neither the line nor
/// the check.
fn offer_doctor(json: bool, settings: Settings) {
    if !json && io::stderr().is_terminal() {
        // The thread ends with the process.
        thread::spawn(|| {
            let options = doctor::DoctorOptions { settings, ..Default::default() };
            // A check forbidden by the system does not justify a line.
            let report = doctor::run(&options).ok();
            if let Some(line) = report.as_ref().and_then(doctor::advice) {
                output::note(&line);
            }
        });
    }
}

fn print_totals(totals: Totals, json: bool) -> Result<(), Failure> {
    let Totals { messages, bytes, unwanted } = totals;
    if json {
        let object = json!({ "messages": messages, "bytes": bytes, "unwanted": unwanted });
        return output::line(&object.to_string());
    }
    let mut text = format!("served {messages} messages, {bytes} bytes");
    if unwanted > 0 {
        text += &format!("; {unwanted} replies had no waiting client");
    }
    output::note(&text);
    Ok(())
}
