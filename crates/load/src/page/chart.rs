//! Line charts as SVG, drawn without a script; colors come from the page's style.

use std::fmt::Write as _;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 260.0;
/// Room for the labels: left, right, top, bottom.
const EDGES: (f64, f64, f64, f64) = (64.0, 28.0, 12.0, 40.0);

/// How values are placed along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Linear, starting at zero.
    Linear,
    /// Logarithmic, in powers of ten.
    Log,
}

/// One axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What it shows, with the unit.
    pub title: &'static str,
    /// How its values are placed.
    pub scale: Scale,
    /// Values with their labels; if empty, they are derived from the data.
    pub ticks: Vec<(f64, String)>,
    /// How a point states its value, if not as a number in the axis's unit.
    pub told: Option<fn(f64) -> String>,
}

impl Axis {
    /// Creates an axis whose labels are derived from the data.
    pub fn new(title: &'static str, scale: Scale) -> Axis {
        Axis { title, scale, ticks: vec![], told: None }
    }

    /// Formats a value with its unit: `144 ms`.
    fn tell(&self, value: f64) -> String {
        self.told.map_or_else(|| format!("{} {}", label(value), self.title), |told| told(value))
    }
}

/// One line; its color depends on its position.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// Its points. Where a value is not a number the line has a gap, and the axis continues.
    pub points: Vec<(f64, f64)>,
}

/// A line chart with two axes.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The label for readers who cannot see the chart.
    pub title: String,
    /// The axis along the bottom.
    pub x: Axis,
    /// The axis along the left.
    pub y: Axis,
    /// The lines that it shows.
    pub lines: Vec<Line>,
}

/// Escapes text for a page, so that none of it is HTML.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(character),
        }
    }
    out
}

/// The range of values along an axis, mapped to 0 to 1.
struct Range {
    low: f64,
    high: f64,
    scale: Scale,
}

impl Range {
    fn of(axis: &Axis, values: impl Iterator<Item = f64>) -> Range {
        let usable = |value: &f64| value.is_finite() && (axis.scale == Scale::Linear || *value > 0.0);
        let ticks = axis.ticks.iter().map(|(value, _)| *value);
        let (low, high) = values
            .chain(ticks)
            .filter(usable)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        let (low, high) = if low <= high { (low, high) } else { (1.0, 10.0) };
        match axis.scale {
            Scale::Linear => {
                Range { low: low.min(0.0), high: if high > 0.0 { high * 1.05 } else { 1.0 }, scale: axis.scale }
            }
            Scale::Log if axis.ticks.is_empty() => {
                let floor = 10f64.powf(low.log10().floor());
                let ceiling = 10f64.powf(high.log10().ceil());
                Range { low: floor, high: if ceiling > floor { ceiling } else { floor * 10.0 }, scale: axis.scale }
            }
            Scale::Log => Range { low, high: if high > low { high } else { low * 10.0 }, scale: axis.scale },
        }
    }

    fn place(&self, value: f64) -> f64 {
        let along = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value.max(self.low) / self.low).log10() / (self.high / self.low).log10(),
        };
        along.clamp(0.0, 1.0)
    }

    fn ticks(&self) -> Vec<(f64, String)> {
        let values: Vec<f64> = match self.scale {
            Scale::Log => {
                let powers = self.low.log10().round() as i32..=self.high.log10().round() as i32;
                // Two labels are too few to read a value between them.
                let factors: &[f64] = if powers.clone().count() > 2 { &[1.0] } else { &[1.0, 2.0, 5.0] };
                let each = powers.flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)));
                each.filter(|value| *value <= self.high * 1.001).collect()
            }
            Scale::Linear => {
                let rough = (self.high - self.low) / 5.0;
                let power = 10f64.powf(rough.log10().floor());
                let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
                let step = steps.into_iter().find(|step| *step >= rough).unwrap_or(rough);
                (0..=6).map(|at| f64::from(at) * step).filter(|value| *value <= self.high).collect()
            }
        };
        values.into_iter().map(|value| (value, label(value))).collect()
    }
}

/// Formats a number as briefly as possible.
pub fn label(value: f64) -> String {
    let text = match value.abs() {
        0.0 => return "0".to_owned(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 1.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

impl Chart {
    /// Returns the picture, with its legend.
    pub fn svg(&self) -> String {
        let points = || self.lines.iter().flat_map(|line| line.points.iter().copied());
        let (x, y) = (Range::of(&self.x, points().map(|point| point.0)), Range::of(&self.y, points().map(|p| p.1)));
        let (left, right, top, bottom) = EDGES;
        let at_x = |value| left + x.place(value) * (WIDTH - left - right);
        let at_y = |value| HEIGHT - bottom - y.place(value) * (HEIGHT - top - bottom);
        let title = escaped(&self.title);
        let mut out = format!(
            r#"<div class="chart" tabindex="0"><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">"#
        );
        let given = |axis: &Axis, range: &Range| if axis.ticks.is_empty() { range.ticks() } else { axis.ticks.clone() };
        for (value, text) in given(&self.y, &y) {
            let (at, end, text) = (at_y(value), WIDTH - right, escaped(&text));
            // Writing into a String cannot fail.
            let _ = write!(out, r#"<path class="grid" d="M{left} {at:.1}H{end}"/>"#);
            let _ = write!(out, r#"<text x="{:.0}" y="{:.1}" text-anchor="end">{text}</text>"#, left - 6.0, at + 4.0);
        }
        for (value, text) in given(&self.x, &x) {
            let (at, base, text) = (at_x(value), HEIGHT - bottom, escaped(&text));
            let _ = write!(out, r#"<path class="grid" d="M{at:.1} {top}V{base}"/>"#);
            let _ = write!(out, r#"<text x="{at:.1}" y="{:.0}" text-anchor="middle">{text}</text>"#, base + 16.0);
        }
        let (middle, low) = (left.midpoint(WIDTH - right), HEIGHT - 6.0);
        let _ = write!(out, r#"<text x="{middle}" y="{low}" text-anchor="middle">{}</text>"#, escaped(self.x.title));
        let height = HEIGHT / 2.0;
        let turned = format!(r#"transform="rotate(-90 12 {height})" x="12" y="{height}""#);
        let _ = write!(out, r#"<text {turned} text-anchor="middle">{}</text>"#, escaped(self.y.title));
        for (number, line) in self.lines.iter().enumerate() {
            draw(&mut out, number % 5, line, ((&self.x, &at_x), (&self.y, &at_y)));
        }
        out.push_str("</svg></div>");
        out + &self.legend()
    }

    fn legend(&self) -> String {
        let mut out = String::from("<p class=\"legend\">");
        for (number, line) in self.lines.iter().enumerate() {
            let _ = write!(out, r#"<span class="c{}">{}</span> "#, number % 5, escaped(&line.name));
        }
        out + "</p>"
    }
}

/// An axis, and the function that places a value along it.
type Place<'a> = (&'a Axis, &'a dyn Fn(f64) -> f64);

fn draw(out: &mut String, color: usize, line: &Line, ((x_axis, at_x), (y_axis, at_y)): (Place<'_>, Place<'_>)) {
    let is_sound = |(x, y): &&(f64, f64)| x.is_finite() && y.is_finite();
    let sound = line.points.iter().filter(is_sound);
    let placed: Vec<_> = sound.map(|(x, y)| (at_x(*x), at_y(*y), *x, *y)).collect();
    let mut path = String::new();
    let mut pen = 'M';
    for point in &line.points {
        if is_sound(&point) {
            let _ = write!(path, "{pen}{:.1} {:.1}", at_x(point.0), at_y(point.1));
        }
        pen = if is_sound(&point) { 'L' } else { 'M' };
    }
    let _ = write!(out, r#"<path class="line c{color}" d="{path}"/>"#);
    let name = escaped(&line.name);
    for (x, y, of_x, of_y) in placed {
        let (of_x, of_y) = (escaped(&x_axis.tell(of_x)), escaped(&y_axis.tell(of_y)));
        let dot = format!(r#"<circle class="c{color}" cx="{x:.1}" cy="{y:.1}" r="2.5">"#);
        let _ = write!(out, "{dot}<title>{name}: {of_y} at {of_x}</title></circle>");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<(f64, f64)>, scale: Scale) -> Chart {
        let line = Line { name: "a<b>".to_owned(), points };
        let (x, y) = (Axis::new("s", Scale::Linear), Axis::new("ms & more", scale));
        Chart { title: "\"x\"".to_owned(), x, y, lines: vec![line] }
    }

    #[test]
    fn nothing_of_the_text_is_markup() {
        assert_eq!(escaped(r#"<a href="x">'&'"#), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;");
        let svg = chart(vec![(0.0, 1.0), (1.0, 2.0)], Scale::Linear).svg();
        assert!(
            svg.contains("a&lt;b&gt;: 2 ms &amp; more at 1 s<")
                && svg.contains("ms &amp; more")
                && !svg.contains("a<b>"),
            "{svg}"
        );
        assert!(svg.contains(r#"aria-label="&quot;x&quot;""#));
    }

    #[test]
    fn the_highest_point_is_above_the_lowest_and_inside() {
        for scale in [Scale::Linear, Scale::Log] {
            let svg = chart(vec![(0.0, 1.0), (10.0, 1000.0)], scale).svg();
            let heights: Vec<f64> =
                svg.split(r#"cy=""#).skip(1).map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect();
            assert!(heights[0] > heights[1] && heights.iter().all(|at| (12.0..=220.0).contains(at)), "{heights:?}");
        }
    }

    #[test]
    fn whatever_the_values_nothing_is_not_a_number() {
        let odd = [vec![], vec![(0.0, 0.0)], vec![(1.0, f64::NAN), (f64::INFINITY, 3.0)], vec![(5.0, 5.0), (5.0, 5.0)]];
        for points in odd {
            for scale in [Scale::Linear, Scale::Log] {
                let svg = chart(points.clone(), scale).svg();
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{points:?}: {svg}");
            }
        }
    }

    /// Red without `pen`, and where empty slices are omitted: a server that was gone seemed to be there all the time.
    /// Red where a decade has a label only at each end: nobody could read a value between them.
    #[test]
    fn an_axis_of_one_decade_has_labels_in_it() {
        let labels = |low: f64, high: f64| {
            let range = Range::of(&Axis::new("ms", Scale::Log), [low, high].into_iter());
            range.ticks().into_iter().map(|(_, label)| label).collect::<Vec<_>>()
        };
        assert_eq!(labels(110.0, 900.0), ["100", "200", "500", "1000"]);
        assert_eq!(labels(2.0, 900.0), ["1", "10", "100", "1000"]);
    }

    #[test]
    fn where_there_is_no_value_there_is_a_gap_and_the_axis_goes_on() {
        let svg = chart(vec![(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN), (3.0, 2.0), (100.0, f64::NAN)], Scale::Log).svg();
        let line = svg.split(r#"class="line c0" d=""#).nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        assert_eq!((line.matches('M').count(), line.matches('L').count()), (2, 1), "{line}");
        assert!(svg.contains(">100</text>"), "{svg}");
    }

    #[test]
    fn labels_are_short() {
        let labels = [0.0, 0.05, 0.25, 2.0, 2.5, 100.0, 12_345.6].map(label);
        assert_eq!(labels, ["0", "0.05", "0.25", "2", "2.5", "100", "12346"]);
    }
}
