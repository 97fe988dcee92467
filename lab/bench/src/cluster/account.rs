//! The account of a cluster: turns options and runs into the input of a report.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::bound::{self, Links};
use super::options::{ClusterOptions, Mix};
use super::phases::{Base, Chosen, MixRuns, Phases};
use super::report::{Measured, Run, Settings, Transport};
use super::run::RunResult;
use super::setting::Setting;
use super::site::Venue;
use crate::contenders::transport;
use apus_testbed::error::Error;
use apus_testbed::fabric::Uplink;
use apus_testbed::machine::PmQosRequest;

/// The results for a set of options: the input of a report.
#[derive(Clone, Copy)]
pub(super) struct Account<'a> {
    pub(super) venue: &'a Venue,
    pub(super) options: &'a ClusterOptions,
    pub(super) phases: &'a Phases<'a>,
    pub(super) link: &'a Chosen,
    pub(super) base: &'a Base,
}

impl Account<'_> {
    /// Returns the complete input of a report. `runs` are the runs of each mix of the options.
    pub(super) fn measured(
        &self,
        runs: &[MixRuns],
        mut notes: Vec<String>,
        command: String,
    ) -> Result<Measured, Error> {
        let mut transports = Vec::new();
        for (mix, runs) in self.options.transports.iter().zip(runs) {
            let parts = runs.of.first().into_iter().flat_map(|run| mix.parts().zip(&run.parts));
            for (name, part) in parts {
                notes.extend(part.caveat.iter().map(|caveat| format!("{name}: {caveat}")));
            }
            transports.extend(self.transports(mix, runs)?);
        }
        Ok(Measured { settings: self.settings(command), transports, notes })
    }

    /// Returns the transports that ran together.
    fn transports(&self, mix: &Mix, runs: &MixRuns) -> Result<Vec<Transport>, Error> {
        let names: Vec<&str> = mix.parts().collect();
        let offered_load = self.options.load / names.len() as f64;
        let run = |part: usize, run: &RunResult| {
            let found = &run.parts[part];
            Run {
                number: run.number,
                summary: found.summary.clone(),
                offered_load,
                achieved_load: offered_load * found.kept_up,
                throughput: found.throughput,
                errors: found.errors,
                why: found.why.clone(),
                cpu_per_gb: found.cpu_per_gb,
                late_p99_us: found.late.quantile(0.99) as f64 / 1e3,
                idle: run.idle,
                switch: run.switch.clone(),
                kill: found.kill,
                counters: found.counters.clone(),
            }
        };
        let transport = |part: usize| {
            let mut beside: Vec<String> = names.iter().map(ToString::to_string).collect();
            let name = beside.remove(part);
            let options = self.options;
            let MixRuns { of, counts, why_lost } = runs;
            // The nodes' settings: this process may have different privileges.
            let settings = match of.first() {
                Some(run) => run.parts[part].settings.clone(),
                None => match options.external(&name) {
                    Some(external) => external.settings.clone(),
                    None => transport::parse(&name)?.settings(),
                },
            };
            let (counts, why_lost) = (*counts, why_lost.clone());
            let runs = of.iter().map(|each| run(part, each)).collect();
            Ok(Transport { name, beside, settings, runs, counts, why_lost })
        };
        (0..names.len()).map(transport).collect()
    }

    fn settings(&self, command: String) -> Settings {
        let Self { options, phases, link, base, .. } = self;
        let sizes = phases.workload().sizes();
        let scale = phases.scale(base);
        Settings {
            workload: phases.workload().to_string(),
            mean_bytes: sizes.mean(),
            short_bytes: scale.short,
            nodes: options.fabric.nodes,
            link: link.mbps * 1_000_000,
            link_how: link.how.clone(),
            load: options.load,
            rate: phases.offered(link.mbps),
            seconds: options.repetition.seconds,
            runs: options.repetition.runs,
            seed: options.repetition.seed,
            mtu: options.fabric.mtu,
            poll: options.repetition.poll,
            processes: options.processes,
            receivers: options.receivers,
            client_max: options.client_max,
            priorities: u8::try_from(options.parameter("num_priorities")).unwrap_or(u8::MAX),
            more: self.more(),
            base: in_words(base),
            bound: bound::lines(self.links(), &scale),
            command,
        }
    }

    fn links(&self) -> Links<'_> {
        // There and back, each time from a host to the switch and from the switch to a host.
        let free = self.venue.is_here() && self.options.fabric.uplink == Uplink::Free;
        let crossed = if free { 2 } else { 4 };
        let (mbps, mtu) = (self.link.mbps, self.options.fabric.mtu);
        Links { mbps, mtu, crossed, load: self.options.load, shares: self.phases.shares() }
    }

    /// Returns further settings by name.
    fn more(&self) -> Map<String, Value> {
        let Self { options, venue, .. } = self;
        let mut more = Map::new();
        let mut add = |name: &str, value: Value| more.insert(name.to_owned(), value);
        add("truncate", json!(options.truncate));
        if options.kill_one {
            add("kill_one", json!(true));
        }
        add("launch", json!(venue.provider()));
        // The network of provided hosts is unknown.
        if venue.is_here() {
            add("buffer", json!(options.fabric.buffer));
            add("loss", json!(options.fabric.loss));
            add("delay_us", json!(options.fabric.delay.as_secs_f64() * 1e6));
            add("uplink", json!(options.fabric.uplink.to_string()));
            add("cores_kept_awake", json!(PmQosRequest::open().is_some()));
        }
        for (name, value) in &options.parameters {
            add(name, json!(value));
        }
        more
    }
}

/// Returns the base of slowdowns in words.
fn in_words(base: &Base) -> String {
    if base.best.is_empty() {
        return "not known".to_owned();
    }
    let mut fastest: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, name) in base.best.values() {
        *fastest.entry(name).or_default() += 1;
    }
    let each: Vec<String> = fastest
        .iter()
        .map(|(name, sizes)| {
            format!("{name} for {sizes} {}", if *sizes == 1 { "size" } else { "sizes" })
        })
        .collect();
    format!(
        "the least time of a request of that size and its reply, one at a time between two hosts when nothing \
         else is under way, by whichever transport was the fastest ({})",
        each.join(", ")
    )
}

/// Returns the options as a command line that repeats the measurement.
pub(super) fn command(
    name: &str,
    venue: &Venue,
    options: &ClusterOptions,
    varied: &[Setting],
) -> String {
    let fabric = &options.fabric;
    let list: Vec<String> = options.transports.iter().map(ToString::to_string).collect();
    let mut words = vec![format!("apus-lab bench {name}")];
    let mut add = |option: &str, value: String| {
        words.push(format!("--{option} {}", quoted(&value)));
    };
    add("workload", options.workload.clone());
    add("truncate", options.truncate.to_string());
    add("load", options.load.to_string());
    add("nodes", fabric.nodes.to_string());
    add("link", options.link.to_string());
    add("transports", list.join(","));
    add("client-max", options.client_max.to_string());
    add("processes", options.processes.to_string());
    add("receivers", options.receivers.to_string());
    add("poll", options.repetition.poll.to_string());
    add("seconds", options.repetition.seconds.to_string());
    add("runs", options.repetition.runs.to_string());
    add("seed", options.repetition.seed.to_string());
    add("mtu", fabric.mtu.to_string());
    if options.kill_one {
        words.push("--kill-one".to_owned());
    }
    let mut add = |option: &str, value: String| {
        words.push(format!("--{option} {}", quoted(&value)));
    };
    if venue.is_here() {
        add("buffer", fabric.buffer.to_string());
        add("loss", fabric.loss.to_string());
        add("delay", format!("{}ns", fabric.delay.as_nanos()));
        add("uplink", fabric.uplink.to_string());
    }
    for (name, value) in &options.parameters {
        add("param", format!("{name}={value}"));
    }
    for setting in varied {
        add("param", setting.to_string());
    }
    words.extend(venue.words().iter().map(|word| quoted(word)));
    words.join(" ")
}

/// Quotes a word for a shell, if necessary.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "+,-./:=@_".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    // Fails only for text that no argument can contain.
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_says_everything_in_words_of_a_shell() {
        let venue = Venue::Fabric { program: "apus".into() };
        let options = ClusterOptions {
            workload: "my sizes.cdf".to_owned(),
            kill_one: true,
            parameters: vec![("burst_bytes".to_owned(), 3000)],
            ..ClusterOptions::default()
        };
        let varied = ["load=0.5,0.8".parse().unwrap()];
        let line = command("sweep", &venue, &options, &varied);
        assert!(
            line.starts_with("apus-lab bench sweep --workload 'my sizes.cdf' --truncate "),
            "{line}"
        );
        for part in [
            " --link auto ",
            " --transports apus,tcp,",
            " --kill-one ",
            " --param burst_bytes=3000 --param load=0.5,0.8 ",
        ] {
            assert!(line.contains(part), "{line}");
        }
        assert!(line.ends_with(" --launch local"), "{line}");
    }

    #[test]
    fn the_base_says_who_was_the_fastest() {
        let best = [(1, "apus"), (2, "tcp"), (3, "apus")];
        let best = best.map(|(size, name)| (size, (10, name.to_owned())));
        let words = in_words(&Base { best: BTreeMap::from(best), notes: Vec::new() });
        assert!(words.ends_with("(apus for 2 sizes, tcp for 1 size)"), "{words}");
    }
}
