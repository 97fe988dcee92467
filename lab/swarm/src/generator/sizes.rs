//! Random message lengths.

use apus_proto::{Config, Profile};
use apus_wire::DATA_HEADER_LEN;
use apus_workload::{SizeDistribution as Distribution, Workload};
use rand::distr::Distribution as _;

use super::config::MAX_MESSAGE;
use super::random::SeededRng;

/// Distribution of the messages of a run.
#[derive(Clone, Debug)]
pub(super) struct Sizes {
    name: String,
    distribution: Option<Distribution>,
    /// Lengths where the behaviour changes.
    edges: Vec<u32>,
    /// Percentage of messages whose length is an edge.
    percent: u32,
    /// 0, or 1 in the kernel profile.
    shortest: u32,
    longest: u32,
    response: Response,
}

/// Length of responses.
#[derive(Clone, Copy, Debug)]
enum Response {
    Empty,
    Byte,
    Echo,
    Drawn,
}

pub(super) fn generate(rng: &mut SeededRng, config: &Config, packet_limit: u32) -> Sizes {
    let longest = config.max_message().min(MAX_MESSAGE) as u32;
    let shortest = u32::from(config.profile() == Profile::Kernel);
    let (name, distribution, percent) = match rng.within(0..10) {
        0..5 => {
            let limit = (rng.scale(2_000, MAX_MESSAGE) as u32).min(longest);
            let workload = Workload::published(rng.within(1..=5)).truncated(limit);
            (workload.to_string(), Some(workload.sizes().clone()), rng.one_of(&[0, 5]))
        }
        5..7 => {
            let size =
                if rng.percent(90) { rng.scale(1, u64::from(longest)) as u32 } else { shortest };
            (format!("{size} bytes each"), Some(Distribution::fixed(size)), 0)
        }
        _ => ("around edges".to_owned(), None, 100),
    };
    let kinds = [Response::Byte, Response::Echo, Response::Drawn, Response::Empty];
    let response = rng.one_of(&kinds[..kinds.len() - shortest as usize]);
    let mut edges = edges(config, packet_limit, longest);
    edges.push(shortest);
    Sizes { name, distribution, edges, percent, shortest, longest, response }
}

/// Returns the boundary lengths: of packets, unscheduled bytes, short messages and messages.
fn edges(config: &Config, packet_limit: u32, longest: u32) -> Vec<u32> {
    let payload = packet_limit - DATA_HEADER_LEN as u32;
    let mut edges = vec![1, payload, 2 * payload, 64 * payload, 65 * payload, 1_396, 2_792];
    let parameters = [
        config.unsched_bytes(),
        config.unsched_bytes_min(),
        config.unsched_bytes_max(),
        config.unsched_bytes() + u64::from(payload),
        config.defer_min_bytes(),
        config.grant_increment(),
        config.burst_bytes(),
    ];
    edges.extend(parameters.map(|value| value as u32));
    edges.push(longest);
    edges.retain(|edge| (1..=longest).contains(edge));
    edges
}

impl Sizes {
    /// Generates the lengths of a request and its response.
    pub(super) fn call(&self, rng: &mut SeededRng) -> (u32, u32) {
        let request = self.message(rng);
        let response = match self.response {
            Response::Empty => 0,
            Response::Byte => 1,
            Response::Echo => request,
            Response::Drawn => self.message(rng),
        };
        (request, response)
    }

    fn message(&self, rng: &mut SeededRng) -> u32 {
        match &self.distribution {
            Some(distribution) if !rng.percent(self.percent) => {
                distribution.sample(rng.rng()).min(self.longest)
            }
            _ => {
                let edge = i64::from(rng.one_of(&self.edges));
                (edge + rng.within(-1..=1)).clamp(self.shortest.into(), self.longest.into()) as u32
            }
        }
    }

    /// Returns a description.
    pub(super) fn describe(&self) -> String {
        let response = match self.response {
            Response::Empty => "empty responses",
            Response::Byte => "responses of a byte",
            Response::Echo => "responses as long as requests",
            Response::Drawn => "responses like requests",
        };
        format!("sizes: {}, {response}", self.name)
    }
}
