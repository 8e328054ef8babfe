"""stub"""
def window_energy_j(readings):
    return (readings[-1].energy_mj-readings[0].energy_mj)/1000
