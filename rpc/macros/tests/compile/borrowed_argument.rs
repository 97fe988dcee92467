#[apus_macros::service]
trait Store {
    async fn get(&self, key: &str) -> String;
}

fn main() {}
