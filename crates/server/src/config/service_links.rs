//! The variables that Kubernetes puts into the environment of every pod for each service of its namespace: for a
//! service named `portiere` they begin as ours do.

/// How a variable ends that each service has.
const HOST: &str = "_SERVICE_HOST";

/// Separates the variables of services from the others, which keep their order.
pub fn apart<'a>(names: &[&'a str]) -> (Vec<&'a str>, Vec<&'a str>) {
    let services: Vec<&str> = names.iter().filter_map(|name| name.strip_suffix(HOST)).collect();
    let of_service = |name: &str| {
        let rest = |service: &&str| name.strip_prefix(*service).and_then(|rest| rest.strip_prefix('_'));
        services.iter().filter_map(rest).any(is_of_service)
    };
    names.iter().copied().partition(|name| of_service(name))
}

/// Returns whether `rest` may follow a service's name: `SERVICE_HOST`, `SERVICE_PORT`, `SERVICE_PORT_HTTP`, `PORT`,
/// `PORT_8080_TCP`, `PORT_8080_TCP_ADDR`.
fn is_of_service(rest: &str) -> bool {
    let of_port = |rest: &str| {
        let mut parts = rest.split('_');
        let is_number = parts.next().is_some_and(|port| port.parse::<u16>().is_ok());
        is_number && matches!(parts.next(), Some("TCP" | "UDP" | "SCTP"))
    };
    matches!(rest, "SERVICE_HOST" | "SERVICE_PORT" | "PORT")
        || rest.starts_with("SERVICE_PORT_")
        || rest.strip_prefix("PORT_").is_some_and(of_port)
}

/// Returns the warning about these variables, if there are any.
pub fn warning(links: &[&str]) -> Option<String> {
    let (first, service) = links.iter().find_map(|name| Some((name, name.strip_suffix(HOST)?)))?;
    let (others, service) = (links.len() - 1, service.to_ascii_lowercase().replace('_', "-"));
    Some(format!(
        "the environment variable {first} and {others} like it are not options: Kubernetes makes them for a service \
         named {service}; set enableServiceLinks: false in the pod's spec"
    ))
}
