"""What operators watch Ingot with: Prometheus of Debian, its promtool, alerts and dashboard."""
