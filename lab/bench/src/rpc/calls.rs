//! The experiment `rpc`: latency and rate of each contender.

use crate::contender::Contender;
use crate::error::Error;
use crate::options::RpcOptions;
use crate::server::ServerProcess;
use crate::sides::{Measured, measure};
use apus_report::findings::Findings;
use apus_report::progress::Progress;
use apus_report::result::{Figure, Outcome, Ratio, Row};
use apus_report::stats::Spread;
use serde_json::{Value, json};

/// Compared pairs.
const PAIRS: [(Contender, Contender); 3] = [
    (Contender::Service, Contender::Call),
    (Contender::TonicApus, Contender::TonicHttp2),
    (Contender::Service, Contender::Tarpc),
];

/// Figures of a run of a contender.
struct Figures {
    contender: Contender,
    run: usize,
    p50_us: f64,
    p99_us: f64,
    krps: f64,
}

/// Measures all contenders, interleaved.
pub(crate) async fn run(options: &RpcOptions) -> Result<Findings, Error> {
    let chosen =
        |contender: &Contender| options.only.is_empty() || options.only.contains(contender);
    let contenders: Vec<Contender> = Contender::ALL.into_iter().filter(chosen).collect();
    let progress = Progress::of(options.runs * contenders.len());
    let mut figures = Vec::new();
    for run in 0..options.runs {
        for contender in &contenders {
            progress.step(contender.name());
            let arguments = ["serve".to_owned(), contender.name().to_owned()];
            let server = ServerProcess::start(&arguments).await?;
            let measured = measure(*contender, server.address, options).await;
            server.end().await?;
            let Measured { latencies, per_second } =
                measured.map_err(|error| format!("{}: {error}", contender.name()))?;
            figures.push(Figures {
                contender: *contender,
                run,
                p50_us: latencies.quantile(0.5) as f64 / 1e3,
                p99_us: latencies.quantile(0.99) as f64 / 1e3,
                krps: per_second / 1e3,
            });
        }
    }
    drop(progress);
    Ok(findings(options, &contenders, &figures))
}

fn findings(options: &RpcOptions, contenders: &[Contender], figures: &[Figures]) -> Findings {
    let of = |contender: Contender, value: fn(&Figures) -> f64| -> Vec<(usize, f64)> {
        let own = figures.iter().filter(|figures| figures.contender == contender);
        own.map(|figures| (figures.run, value(figures))).collect()
    };
    let spread = |values: Vec<(usize, f64)>| {
        Figure::Spread(Spread::over(
            &values.into_iter().map(|(_, value)| value).collect::<Vec<_>>(),
        ))
    };
    let mut outcome = Outcome::new("rpc", options.config());
    let settings = contenders.iter().map(|each| (each.name().to_owned(), json!(each.settings())));
    outcome.config.insert("settings".to_owned(), Value::Object(settings.collect()));
    outcome.rows = contenders
        .iter()
        .map(|contender| {
            Row::new(contender.name())
                .with("p50_us", spread(of(*contender, |figures| figures.p50_us)))
                .with("p99_us", spread(of(*contender, |figures| figures.p99_us)))
                .with("krps", spread(of(*contender, |figures| figures.krps)))
        })
        .collect();
    for (one, other) in PAIRS {
        let mut compare = |figure: &str, value: fn(&Figures) -> f64| {
            let ratio = Ratio::paired(&of(one, value), &of(other, value));
            let name = format!("{figure} {}/{}", one.name(), other.name());
            outcome.ratios.extend(ratio.map(|ratio| (name, ratio)));
        };
        compare("p50", |figures| figures.p50_us);
        compare("krps", |figures| figures.krps);
    }
    let lead = "Client and server are processes of one thread each, over loopback; apus over UDP, the others over TCP. p50 and p99 are of \
                one call at a time, krps of many outstanding.";
    Findings::new(outcome, "What does a typed call cost?", lead).with_all(
        Vec::new(),
        Vec::new(),
        [],
    )
}
