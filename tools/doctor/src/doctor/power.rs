//! Do clock, frequency and idle states of the cores let messages wait?

use ::apus::PollMode;

use super::finding::{Finding, Measured};
use super::host::Host;
use super::measure::{pace, wakeup};
use apus_testbed::clock;

/// Clock sources that are read without a system call, on all architectures: kernel's `vdso_clock_mode`.
const FAST: [&str; 4] = ["tsc", "kvm-clock", "arch_sys_counter", "riscv_clocksource"];

/// The same on Microsoft's hypervisor, under either of its names.
const FAST_PREFIX: &str = "hyperv_clocksource";

const CLOCKS: &str = "/sys/devices/system/clocksource/clocksource0";

/// Wake-ups from idle states that take longer than this, in microseconds, are worth a word. Ours: about what
/// a small call takes altogether.
const SLOW_WAKE: u64 = 20;

/// What a core does with time.
pub(super) fn check(host: &Host, poll: PollMode) -> Vec<Finding> {
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

fn clock_source(host: &Host) -> Finding {
    const CHECK: &str = "clock-source";
    let reading = Measured::new("a reading of the clock; a call takes some ten", reading(), "ns");
    let Some(current) = host.text(&format!("{CLOCKS}/current_clocksource")) else {
        return Finding::note(CHECK, "the system does not name its clock source")
            .measured([reading]);
    };
    let found = format!("time is read from `{current}`");
    if FAST.contains(&current.as_str()) || current.starts_with(FAST_PREFIX) {
        return Finding::ok(CHECK, found).measured([reading]);
    }
    let available = host.text(&format!("{CLOCKS}/available_clocksource")).unwrap_or_default();
    let better = available.split_whitespace().find(|name| FAST.contains(name));
    let mend = match better {
        Some(name) => vec![format!("echo {name} > {CLOCKS}/current_clocksource")],
        None => vec![
            "dmesg | grep -i -e tsc -e clocksource  # why the kernel does not trust the time stamp counter".to_owned(),
            "tsc=reliable  # on the kernel's command line, if the machine is known to have a good one".to_owned(),
        ],
    };
    Finding::warning(CHECK, found)
        .because("Each reading is a system call and an access to a device: 0.5 to 2 µs in place of 0.02.")
        .measured([reading])
        .mend(mend)
}

/// Nanoseconds of a reading.
fn reading() -> f64 {
    const READINGS: u64 = 2_000;
    let began = clock::now();
    let mut last = began;
    for _ in 0..READINGS {
        last = clock::now();
    }
    (last - began) as f64 / READINGS as f64
}

/// `None` where nobody changes frequencies, as in virtual machines.
fn governor(host: &Host) -> Option<Finding> {
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
    let found = format!("frequency governor `{}`", governors.join("`, `"));
    if governors == ["performance"] {
        return Some(Finding::ok(CHECK, found));
    }
    let pace = Measured::new(
        "speed of a core just after idling, of its best",
        100.0 * pace::after_idling(),
        "%",
    );
    Some(
        Finding::warning(CHECK, found)
            .because("A core that had nothing to do begins slowly; short messages are over before it is fast.")
            .measured([pace])
            .mend([
                "cpupower frequency-set --governor performance",
                "tuned-adm profile network-latency  # the same, and idle states, also after the next start",
            ]),
    )
}

fn idle_states(host: &Host, poll: PollMode) -> Finding {
    const CHECK: &str = "idle-states";
    let wakes = wakeup::of_idle_core().map(|(median, tail)| {
        [
            Measured::new("a wake-up after a millisecond without work, median", median, "us"),
            Measured::new("the same, 99th percentile", tail, "us"),
        ]
    });
    let wakes = wakes.into_iter().flatten();
    let Some((name, latency)) = deepest(host) else {
        return Finding::ok(CHECK, "no idle states that the system tells of").measured(wakes);
    };
    let found = format!("idle cores fall as deep as `{name}`, which takes {latency} µs to leave");
    if latency <= SLOW_WAKE {
        return Finding::ok(CHECK, found).measured(wakes);
    }
    let finding = match poll {
        // Who never sleeps lets its core never idle.
        PollMode::Spin => Finding::note(CHECK, found),
        _ => Finding::warning(CHECK, found),
    };
    finding
        .because("A thread that sleeps until a message comes waits for its core first. Threads that spin do not.")
        .measured(wakes)
        .mend([
            format!("cpupower idle-set --disable-by-latency {}", SLOW_WAKE + 1),
            "tuned-adm profile network-latency  # the same, and the governor, also after the next start".to_owned(),
            "poll = \"spin\"  # or this in apus' configuration: a core for each thread that waits".to_owned(),
        ])
}

/// The idle state in use, of any core, that takes longest to leave, and how many microseconds that is.
fn deepest(host: &Host) -> Option<(String, u64)> {
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

/// Whether the kernel looks at the interface itself before it sleeps; `None` if the kernel cannot.
fn busy_polling(host: &Host, poll: PollMode) -> Option<Finding> {
    const CHECK: &str = "busy-polling";
    let value = |name| host.number::<u32>(&format!("/proc/sys/net/core/{name}"));
    let (read, wait) = (value("busy_read")?, value("busy_poll")?);
    let found = format!("net.core.busy_read is {read} µs, net.core.busy_poll {wait} µs");
    if (read > 0 && wait > 0) || !has_card(host) || poll == PollMode::Block {
        return Some(Finding::ok(CHECK, found));
    }
    Some(
        Finding::note(CHECK, found)
            .because(
                "Packets wait for an interrupt of the network card, some microseconds; the kernel can look at the card \
                 whenever a thread polls its socket instead. Worth it where a card's queue belongs to one endpoint.",
            )
            .mend([
                "sysctl -w net.core.busy_read=50 net.core.busy_poll=50",
                "busy_poll_usecs = 50  # or this under [udp] in apus' configuration, with CAP_NET_ADMIN",
            ]),
    )
}

/// Whether an interface has a device behind it.
fn has_card(host: &Host) -> bool {
    const INTERFACES: &str = "/sys/class/net";
    host.names(INTERFACES).iter().any(|name| host.has(&format!("{INTERFACES}/{name}/device")))
}

#[cfg(test)]
mod tests {
    use super::super::host::planted;
    use super::*;
    use crate::doctor::Severity;

    #[test]
    fn a_slow_clock_is_replaced_by_a_fast_one_if_there_is_one() {
        let current = format!("{CLOCKS}/current_clocksource");
        let available = format!("{CLOCKS}/available_clocksource");
        let (host, _root) = planted::host(&[(&current, "hpet"), (&available, "tsc hpet acpi_pm")]);
        let finding = clock_source(&host);
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.mend, [format!("echo tsc > {current}")]);
        let (host, _root) = planted::host(&[(&current, "hpet"), (&available, "hpet acpi_pm")]);
        assert!(clock_source(&host).mend[0].starts_with("dmesg"));
        for fast in ["tsc", "hyperv_clocksource_tsc_page"] {
            let (host, _root) = planted::host(&[(&current, fast)]);
            assert_eq!(clock_source(&host).severity, Severity::Ok);
        }
    }

    #[test]
    fn one_core_that_saves_power_is_enough_to_be_named() {
        let file =
            |policy| format!("/sys/devices/system/cpu/cpufreq/policy{policy}/scaling_governor");
        let (host, _root) = planted::host(&[(&file(0), "performance"), (&file(4), "powersave")]);
        let finding = governor(&host).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.found, "frequency governor `performance`, `powersave`");
        let (host, _root) = planted::host(&[(&file(0), "performance")]);
        assert_eq!(governor(&host).unwrap().severity, Severity::Ok);
    }

    #[test]
    fn the_deepest_idle_state_in_use_counts() {
        let file =
            |state, name| format!("/sys/devices/system/cpu/cpu0/cpuidle/state{state}/{name}");
        let files = |disabled| {
            planted::host(&[
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
        assert!(finding.found.contains("`C1`") && finding.measured.len() == 2);
    }

    #[test]
    fn busy_polling_is_for_network_cards() {
        let core = |name| format!("/proc/sys/net/core/{name}");
        let (read, wait) = (core("busy_read"), core("busy_poll"));
        let (host, _root) =
            planted::host(&[(&read, "0"), (&wait, "0"), ("/sys/class/net/eth0/device", "")]);
        assert_eq!(busy_polling(&host, PollMode::Spin).unwrap().severity, Severity::Note);
        assert_eq!(busy_polling(&host, PollMode::Block).unwrap().severity, Severity::Ok);
        let (host, _root) =
            planted::host(&[(&read, "0"), (&wait, "0"), ("/sys/class/net/lo/mtu", "1")]);
        assert_eq!(busy_polling(&host, PollMode::Spin).unwrap().severity, Severity::Ok);
    }
}
