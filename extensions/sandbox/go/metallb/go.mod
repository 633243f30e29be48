module openfleet.clusters/sandbox/metallb

go 1.26.0

require go.universe.tf/metallb v0.15.2
