//! Power checks: clock source, core frequency, idle states, busy polling.

use ::apus::PollMode;

use super::finding::{Finding, Measurement};
use super::host::SystemFiles;
use super::measure::{pace, wakeup};
use apus_measure::clock;

/// Clock sources readable without a system call, on all architectures: the kernel's
/// `vdso_clock_mode`.
const FAST: [&str; 4] = ["tsc", "kvm-clock", "arch_sys_counter", "riscv_clocksource"];

/// Name prefix of such a clock source on Microsoft's hypervisor.
const FAST_PREFIX: &str = "hyperv_clocksource";

const CLOCKS: &str = "/sys/devices/system/clocksource/clocksource0";

/// Maximum wake-up latency from an idle state, in microseconds, before it is reported. Chosen by
/// us: the duration of a short call.
const SLOW_WAKE: u64 = 20;

/// Runs all checks of clocks and power states.
pub(super) fn check(host: &SystemFiles, poll: PollMode) -> Vec<Finding> {
    [
        Some(clock_source(host)),
        governor(host),
        Some(idle_states(host, poll)),
        busy_polling(host, poll),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn clock_source(host: &SystemFiles) -> Finding {
    const CHECK: &str = "clock-source";
    let reading = Measurement::new("clock reading; a call needs about ten", reading(), "ns");
    let Some(current) = host.text(&format!("{CLOCKS}/current_clocksource")) else {
        return Finding::note(CHECK, "the system does not report its clock source")
            .with_measurements([reading]);
    };
    let fact = format!("the clock source is `{current}`");
    if FAST.contains(&current.as_str()) || current.starts_with(FAST_PREFIX) {
        return Finding::ok(CHECK, fact).with_measurements([reading]);
    }
    let available = host.text(&format!("{CLOCKS}/available_clocksource")).unwrap_or_default();
    let better = available.split_whitespace().find(|name| FAST.contains(name));
    let fixes = match better {
        Some(name) => vec![format!("echo {name} > {CLOCKS}/current_clocksource")],
        None => vec![
            "dmesg | grep -i -e tsc -e clocksource  # why the kernel rejects the time stamp counter".to_owned(),
            "tsc=reliable  # on the kernel command line, if the counter of this machine is known to be reliable".to_owned(),
        ],
    };
    Finding::warning(CHECK, fact)
        .because(
            "Each reading is a system call and a device access: 0.5 to 2 µs instead of 0.02 µs.",
        )
        .with_measurements([reading])
        .fix(fixes)
}

/// Returns the nanoseconds of a clock reading.
fn reading() -> f64 {
    const READINGS: u64 = 2_000;
    let began = clock::now();
    let mut last = began;
    for _ in 0..READINGS {
        last = clock::now();
    }
    (last - began) as f64 / READINGS as f64
}

/// Checks the frequency governor; `None` if the system has none, as in virtual machines.
fn governor(host: &SystemFiles) -> Option<Finding> {
    const CHECK: &str = "frequency";
    const POLICIES: &str = "/sys/devices/system/cpu/cpufreq";
    let policies = host.names(POLICIES);
    let mut governors: Vec<String> = policies
        .iter()
        .filter(|name| name.starts_with("policy"))
        .filter_map(|name| host.text(&format!("{POLICIES}/{name}/scaling_governor")))
        .collect();
    governors.sort_unstable();
    governors.dedup();
    if governors.is_empty() {
        return None;
    }
    let fact = format!("frequency governor `{}`", governors.join("`, `"));
    if governors == ["performance"] {
        return Some(Finding::ok(CHECK, fact));
    }
    let pace = Measurement::new(
        "speed of a core right after idling, relative to its best",
        100.0 * pace::after_idling(),
        "%",
    );
    Some(
        Finding::warning(CHECK, fact)
            .because("An idle core starts at a low frequency; short messages are complete before it rises.")
            .with_measurements([pace])
            .fix([
                "cpupower frequency-set --governor performance",
                "tuned-adm profile network-latency  # also sets idle states, and persists across reboots",
            ]),
    )
}

fn idle_states(host: &SystemFiles, poll: PollMode) -> Finding {
    const CHECK: &str = "idle-states";
    let wakes = wakeup::of_idle_core().map(|(median, tail)| {
        [
            Measurement::new(
                "median wake-up latency after one millisecond of idling",
                median,
                "us",
            ),
            Measurement::new("99th percentile of this latency", tail, "us"),
        ]
    });
    let wakes = wakes.into_iter().flatten();
    let Some((name, latency)) = deepest(host) else {
        return Finding::ok(CHECK, "the system reports no idle states").with_measurements(wakes);
    };
    let fact = format!("idle cores enter `{name}`, which takes {latency} µs to leave");
    if latency <= SLOW_WAKE {
        return Finding::ok(CHECK, fact).with_measurements(wakes);
    }
    let finding = match poll {
        // A thread that never sleeps prevents its core from idling.
        PollMode::Spin => Finding::note(CHECK, fact),
        _ => Finding::warning(CHECK, fact),
    };
    finding
        .because("A sleeping thread that is woken by a message first waits for its core. Spinning threads do not.")
        .with_measurements(wakes)
        .fix([
            format!("cpupower idle-set --disable-by-latency {}", SLOW_WAKE + 1),
            "tuned-adm profile network-latency  # also sets the governor, and persists across reboots".to_owned(),
            "poll = \"spin\"  # alternatively, in the configuration of apus; needs a core for each waiting thread".to_owned(),
        ])
}

/// Returns the enabled idle state of any core with the highest exit latency, and that latency in
/// microseconds.
fn deepest(host: &SystemFiles) -> Option<(String, u64)> {
    const CORES: &str = "/sys/devices/system/cpu";
    let cores = host.names(CORES);
    let states = cores.iter().flat_map(|core| {
        let folder = format!("{CORES}/{core}/cpuidle");
        host.names(&folder).into_iter().map(move |state| format!("{folder}/{state}"))
    });
    let known = states.filter_map(|state| {
        let disabled = host.number::<u8>(&format!("{state}/disable")).is_some_and(|it| it != 0);
        let latency = host.number(&format!("{state}/latency"))?;
        (!disabled).then_some((host.text(&format!("{state}/name")).unwrap_or_default(), latency))
    });
    known.max_by_key(|(_, latency)| *latency)
}

/// Checks whether the kernel polls the interface before it sleeps; `None` if the kernel cannot.
fn busy_polling(host: &SystemFiles, poll: PollMode) -> Option<Finding> {
    const CHECK: &str = "busy-polling";
    let value = |name| host.number::<u32>(&format!("/proc/sys/net/core/{name}"));
    let (read, wait) = (value("busy_read")?, value("busy_poll")?);
    let fact = format!("net.core.busy_read is {read} µs, net.core.busy_poll {wait} µs");
    if (read > 0 && wait > 0) || !has_card(host) || poll == PollMode::Block {
        return Some(Finding::ok(CHECK, fact));
    }
    Some(
        Finding::note(CHECK, fact)
            .because(
                "Packets wait some microseconds for an interrupt of the network card. Instead, the kernel can poll the card \
                 whenever a thread polls its socket. This is useful if a queue of the card belongs to one endpoint.",
            )
            .fix([
                "sysctl -w net.core.busy_read=50 net.core.busy_poll=50",
                "busy_poll_usecs = 50  # alternatively, under [udp] in the configuration of apus; requires CAP_NET_ADMIN",
            ]),
    )
}

/// Returns whether any interface has a device.
fn has_card(host: &SystemFiles) -> bool {
    const INTERFACES: &str = "/sys/class/net";
    host.names(INTERFACES).iter().any(|name| host.has(&format!("{INTERFACES}/{name}/device")))
}

#[cfg(test)]
mod tests {
    use super::super::host::fixture;
    use super::*;
    use crate::doctor::Severity;

    #[test]
    fn a_fast_clock_source_is_recommended_if_available() {
        let current = format!("{CLOCKS}/current_clocksource");
        let available = format!("{CLOCKS}/available_clocksource");
        let (host, _root) = fixture::host(&[(&current, "hpet"), (&available, "tsc hpet acpi_pm")]);
        let finding = clock_source(&host);
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.fixes, [format!("echo tsc > {current}")]);
        let (host, _root) = fixture::host(&[(&current, "hpet"), (&available, "hpet acpi_pm")]);
        assert!(clock_source(&host).fixes[0].starts_with("dmesg"));
        for fast in ["tsc", "hyperv_clocksource_tsc_page"] {
            let (host, _root) = fixture::host(&[(&current, fast)]);
            assert_eq!(clock_source(&host).severity, Severity::Ok);
        }
    }

    #[test]
    fn one_core_that_saves_power_is_enough_for_a_warning() {
        let file =
            |policy| format!("/sys/devices/system/cpu/cpufreq/policy{policy}/scaling_governor");
        let (host, _root) = fixture::host(&[(&file(0), "performance"), (&file(4), "powersave")]);
        let finding = governor(&host).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.fact, "frequency governor `performance`, `powersave`");
        let (host, _root) = fixture::host(&[(&file(0), "performance")]);
        assert_eq!(governor(&host).unwrap().severity, Severity::Ok);
    }

    #[test]
    fn the_deepest_idle_state_in_use_counts() {
        let file =
            |state, name| format!("/sys/devices/system/cpu/cpu0/cpuidle/state{state}/{name}");
        let files = |disabled| {
            fixture::host(&[
                (&file(0, "name"), "C1"),
                (&file(0, "latency"), "2"),
                (&file(1, "name"), "C6"),
                (&file(1, "latency"), "133"),
                (&file(1, "disable"), disabled),
            ])
        };
        let (host, _root) = files("0");
        assert_eq!(idle_states(&host, PollMode::Block).severity, Severity::Warning);
        assert_eq!(idle_states(&host, PollMode::Spin).severity, Severity::Note, "it never sleeps");
        let (host, _root) = files("1");
        let finding = idle_states(&host, PollMode::Block);
        assert_eq!(finding.severity, Severity::Ok, "{finding:?}");
        assert!(finding.fact.contains("`C1`") && finding.measurements.len() == 2);
    }

    #[test]
    fn busy_polling_is_for_network_cards() {
        let core = |name| format!("/proc/sys/net/core/{name}");
        let (read, wait) = (core("busy_read"), core("busy_poll"));
        let (host, _root) =
            fixture::host(&[(&read, "0"), (&wait, "0"), ("/sys/class/net/eth0/device", "")]);
        assert_eq!(busy_polling(&host, PollMode::Spin).unwrap().severity, Severity::Note);
        assert_eq!(busy_polling(&host, PollMode::Block).unwrap().severity, Severity::Ok);
        let (host, _root) =
            fixture::host(&[(&read, "0"), (&wait, "0"), ("/sys/class/net/lo/mtu", "1")]);
        assert_eq!(busy_polling(&host, PollMode::Spin).unwrap().severity, Severity::Ok);
    }
}
